// Calls from other threads, and the end of them.
#include "kvstore/client/client.h"

#include <gmock/gmock.h>
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

// What each verb hands over, on a store that answers and on one that has stopped.
struct Outcomes {
  std::vector<Status> renewed, touched, put;
  std::vector<BlockReadResult> got;
  Status released{Code::kConflict}, deleted{Code::kConflict}, each{Code::kConflict};
};

void CallAll(Client& client, Outcomes& outcomes) {
  const std::vector<BlockId> chain(3);
  client.Renew({LeaseId{1}, LeaseId{2}}, {},
               [&](std::vector<Status> all) { outcomes.renewed = std::move(all); });
  client.Release({LeaseId{1}}, {}, [&](Status outcome) { outcomes.released = std::move(outcome); });
  client.LookupEach({}, chain, 0, {}, [&](Result<EachHit> hit) {
    outcomes.each = hit.ok() ? Status() : hit.status();
  });
  client.Touch({}, chain, 0, {}, [&](std::vector<Status> all) { outcomes.touched = all; });
  client.Delete({}, chain, 0, [&](Status outcome) { outcomes.deleted = std::move(outcome); });
  client.Get({}, chain, std::vector<BlockRead>(2), kNever,
             [&](std::vector<BlockReadResult> all) { outcomes.got = std::move(all); });
  ChainPut put;
  put.blocks.resize(4);
  client.Put(std::move(put), [&](std::vector<Status> all) { outcomes.put = std::move(all); });
}

TEST(Client, EveryVerbReachesTheStoreAndIsRefusedAfterStop) {
  Loop loop;
  Event release(loop);
  EmptyStore store(release);
  Client client(loop, store);
  Outcomes served;
  CallAll(client, served);
  loop.RunReady();
  EXPECT_THAT(served.renewed, ::testing::ElementsAre(IsOk(), IsOk()));
  EXPECT_THAT(served.touched, ::testing::Each(IsOk()));
  EXPECT_EQ(served.touched.size(), 3u);
  EXPECT_THAT(served.put, ::testing::SizeIs(4));
  EXPECT_EQ(served.got.size(), 2u);
  EXPECT_THAT(served.released, IsOk());
  EXPECT_THAT(served.deleted, IsOk());
  EXPECT_THAT(served.each, IsOk());

  EXPECT_TRUE(client.Stop().done());
  Outcomes refused;
  CallAll(client, refused);
  const auto is_refused = HasCode(Code::kUnavailable);
  EXPECT_THAT(refused.renewed, ::testing::ElementsAre(is_refused, is_refused));
  EXPECT_THAT(refused.touched, ::testing::ElementsAre(is_refused, is_refused, is_refused));
  EXPECT_THAT(refused.put, ::testing::SizeIs(4));
  EXPECT_THAT(refused.put, ::testing::Each(is_refused));
  ASSERT_EQ(refused.got.size(), 2u);
  EXPECT_THAT(refused.got[1].status, is_refused);
  EXPECT_THAT(refused.released, is_refused);
  EXPECT_THAT(refused.deleted, is_refused);
  EXPECT_THAT(refused.each, is_refused);
}

}  // namespace
}  // namespace cairn::kv
