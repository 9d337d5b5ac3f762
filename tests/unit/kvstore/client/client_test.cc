// Calls from other threads, and the end of them.
#include "kvstore/client/client.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/support/status_matchers.h"

namespace cairn::kv {
namespace {

using testing::HasCode;
using testing::IsOk;

// Knows no blocks; answers once the event is set.
class EmptyStore final : public BlockStore {
 public:
  explicit EmptyStore(Event& release) : release_(release) {}
  Task<Result<NamespaceId>> Attach(NamespaceOptions) override { co_return NamespaceId{{1, 2}}; }
  Task<Result<ChainHit>> Lookup(NamespaceId, std::vector<BlockId>, LeaseOrder) override {
    co_await release_;
    co_return ChainHit{};
  }
  Task<Result<EachHit>> LookupEach(NamespaceId, std::vector<BlockId>, uint32_t,
                                   LeaseOrder) override {
    co_return EachHit{};
  }
  Task<std::vector<Status>> Renew(std::vector<LeaseId> leases, LeaseOrder) override {
    co_return std::vector<Status>(leases.size());
  }
  Task<Status> Release(std::vector<LeaseId>, SessionId) override { co_return Status(); }
  Task<std::vector<Status>> Touch(NamespaceId, std::vector<BlockId> chain, uint32_t,
                                  UnixMillis) override {
    co_return std::vector<Status>(chain.size());
  }
  Task<std::vector<BlockReadResult>> Get(NamespaceId, std::vector<BlockId>,
                                         std::vector<BlockRead> reads, Instant) override {
    co_return std::vector<BlockReadResult>(reads.size(), {Status(Code::kNotFound), 0});
  }
  Task<std::vector<Status>> Put(ChainPut put) override {
    co_return std::vector<Status>(put.blocks.size());
  }
  Task<Status> Delete(NamespaceId, std::vector<BlockId>, uint32_t) override { co_return Status(); }

 private:
  Event& release_;
};

TEST(Client, ServesThreadsOnTheLoop) {
  Loop loop;
  Event release(loop);
  release.Set();
  EmptyStore store(release);
  Client client(loop, store);
  std::atomic<int> answers = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      EXPECT_THAT(AttachAndWait(client, {.name = "n"}), IsOk());
      for (int call = 0; call < 100; ++call) {
        client.Lookup({}, {}, [&](Result<ChainHit> hit) { answers += hit.ok() ? 1 : 0; });
        client.Put({}, [&](std::vector<Status>) { ++answers; });
        client.Get({}, {}, {}, kNever, [&](std::vector<BlockReadResult>) { ++answers; });
      }
    });
  }
  while (answers < 1200) loop.RunReady();
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(client.Stop().done());
}

TEST(Client, StopWaitsForCallsInFlightAndRefusesLaterOnes) {
  Loop loop;
  Event release(loop);
  EmptyStore store(release);
  Client client(loop, store);
  int found = 0;
  client.Lookup({}, {}, [&](Result<ChainHit> hit) { found += hit.ok() ? 1 : 0; });
  loop.RunReady();
  Task<void> stop = client.Stop();
  EXPECT_FALSE(stop.done());
  Status late;
  client.Lookup({}, {}, [&](Result<ChainHit> hit) { late = hit.status(); });
  release.Set();
  loop.RunReady();
  EXPECT_TRUE(stop.done());
  EXPECT_EQ(found, 1);
  EXPECT_THAT(late, HasCode(Code::kUnavailable));
}

}  // namespace
}  // namespace cairn::kv
