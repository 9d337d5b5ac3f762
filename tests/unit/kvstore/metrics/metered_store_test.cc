// Calls go through unchanged, and are timed by the store's clock.
#include "kvstore/metrics/metered_store.h"

#include <gtest/gtest.h>

#include "tests/sim/sim_clock.h"

namespace cairn::kv {
namespace {

// Takes 3 ms for everything; answers as told.
class SlowStore final : public BlockStore {
 public:
  SlowStore(Clock& clock, Status answer) : clock_(clock), answer_(std::move(answer)) {}
  Task<Result<NamespaceId>> Attach(NamespaceOptions) override {
    co_await Pause();
    if (!answer_.ok()) co_return answer_;
    co_return NamespaceId{{1, 2}};
  }
  Task<Result<ChainHit>> Lookup(NamespaceId, std::vector<BlockId> chain, LeaseOrder) override {
    co_await Pause();
    if (!answer_.ok()) co_return answer_;
    ChainHit hit;
    hit.blocks = static_cast<uint32_t>(chain.size());
    co_return hit;
  }
  Task<Result<EachHit>> LookupEach(NamespaceId, std::vector<BlockId>, uint32_t,
                                   LeaseOrder) override {
    co_await Pause();
    if (!answer_.ok()) co_return answer_;
    co_return EachHit{};
  }
  Task<std::vector<Status>> Renew(std::vector<LeaseId> leases, LeaseOrder) override {
    co_await Pause();
    co_return std::vector<Status>(leases.size(), answer_);
  }
  Task<Status> Release(std::vector<LeaseId>, SessionId) override {
    co_await Pause();
    co_return answer_;
  }
  Task<std::vector<BlockReadResult>> Get(NamespaceId, std::vector<BlockId>,
                                         std::vector<BlockRead> reads, Instant) override {
    co_await Pause();
    co_return std::vector<BlockReadResult>(reads.size(), {answer_, 0});
  }
  Task<std::vector<Status>> Put(ChainPut put) override {
    co_await Pause();
    co_return std::vector<Status>(put.blocks.size(), answer_);
  }
  Task<std::vector<Status>> Touch(NamespaceId, std::vector<BlockId> chain, uint32_t,
                                  UnixMillis) override {
    co_await Pause();
    co_return std::vector<Status>(chain.size(), answer_);
  }
  Task<Status> Delete(NamespaceId, std::vector<BlockId>, uint32_t) override {
    co_await Pause();
    co_return answer_;
  }

 private:
  Task<void> Pause() { return clock_.SleepUntil(clock_.Now() + Millis(3), nullptr); }

  Clock& clock_;
  const Status answer_;
};

struct World {
  explicit World(Status answer) : slow(clock, std::move(answer)), store(slow, clock) {}

  void CallEverything() {
    const std::vector<BlockId> chain = {BlockId{{0, 1}}, BlockId{{0, 2}}};
    (void)clock.Await(store.Attach({}));
    (void)clock.Await(store.Lookup({}, chain, {}));
    (void)clock.Await(store.LookupEach({}, chain, 0, {}));
    (void)clock.Await(store.Renew({LeaseId{1}}, {}));
    (void)clock.Await(store.Release({LeaseId{1}}, {}));
    std::vector<BlockRead> reads(2);
    (void)clock.Await(store.Get({}, chain, std::move(reads), kNever));
    ChainPut put;
    put.blocks.resize(2);
    (void)clock.Await(store.Put(std::move(put)));
    (void)clock.Await(store.Touch({}, chain, 0, {}));
    (void)clock.Await(store.Delete({}, chain, 0));
  }

  Loop loop;
  sim::SimClock clock{loop};
  SlowStore slow;
  MeteredStore store;
};

TEST(MeteredStore, TimesEveryVerb) {
  World world{Status()};
  world.CallEverything();
  for (size_t i = 0; i < kStoreVerbs; ++i) {
    const auto& verb = world.store.metered_stats().verbs[i];
    EXPECT_EQ(verb.latency.count, 1u) << VerbName(static_cast<StoreVerb>(i));
    EXPECT_EQ(verb.latency.sum_nanos, 3'000'000u) << VerbName(static_cast<StoreVerb>(i));
    EXPECT_EQ(verb.errors, 0u);
  }
}

TEST(MeteredStore, AMissIsNoError) {
  World world{Status(Code::kNotFound)};
  world.CallEverything();
  for (const auto& verb : world.store.metered_stats().verbs) EXPECT_EQ(verb.errors, 0u);
}

TEST(MeteredStore, CountsErrorsOnceACall) {
  World world{Status(Code::kDeadline)};
  world.CallEverything();
  for (const auto& verb : world.store.metered_stats().verbs) EXPECT_EQ(verb.errors, 1u);
  EXPECT_EQ(world.store.metered_stats().get_late_blocks, 2u);
}

TEST(MeteredStore, GivesTheAnswerThrough) {
  World world{Status()};
  const std::vector<BlockId> chain(5);
  EXPECT_EQ(world.clock.Await(world.store.Lookup({}, chain, {})).value().blocks, 5u);
}

}  // namespace
}  // namespace cairn::kv
