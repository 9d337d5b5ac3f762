// What every control store does: one suite over the file, the simulation and a real etcd.
#include "kvstore/control/control_store.h"

#include <gmock/gmock.h>

#include "kvstore/control/agent.h"
#include "kvstore/control/coordinator.h"
#include "kvstore/control/member_reports.h"
#include "kvstore/control/space_directory.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/kvstore/control/stores/store_rig.h"

namespace cairn::kv {
namespace {

using testing::HasCode;
using testing::IsOk;
using ::testing::ElementsAre;

struct Twin {
  const char* name;
  std::unique_ptr<StoreRig> (*create)();
};

Change Put(const std::string& key, const std::string& value, NodeLeaseId lease = {}) {
  Change change;
  change.key = key;
  change.value = value;
  change.lease = lease;
  return change;
}

Change Delete(const std::string& key, Change::Kind kind = Change::Kind::kDelete) {
  Change change;
  change.kind = kind;
  change.key = key;
  return change;
}

Compare Modified(const std::string& key, int64_t revision) {
  Compare compare;
  compare.key = key;
  compare.revision = revision;
  return compare;
}

class ControlStoreTest : public ::testing::TestWithParam<Twin> {
 protected:
  void SetUp() override {
    rig_ = GetParam().create();
    if (rig_ == nullptr) GTEST_SKIP() << "etcd is not installed (Debian: etcd-server)";
  }

  Result<TransactionOutcome> Commit(std::vector<Compare> compares, std::vector<Change> changes) {
    Transaction transaction;
    transaction.compares = std::move(compares);
    transaction.changes = std::move(changes);
    return rig_->Await(rig_->store().Commit(std::move(transaction), rig_->In(10)));
  }
  Snapshot Range(const std::string& prefix) {
    auto snapshot = rig_->Await(rig_->store().Range(prefix, rig_->In(10)));
    EXPECT_THAT(snapshot, IsOk());
    return snapshot.ok() ? snapshot.value() : Snapshot();
  }
  std::vector<std::string> Keys(const std::string& prefix) {
    std::vector<std::string> keys;
    for (const KeyValue& entry : Range(prefix).entries) keys.push_back(entry.key);
    return keys;
  }
  NodeLeaseId Grant(int64_t seconds) {
    return rig_->Await(rig_->store().Grant(Seconds(seconds), rig_->In(10))).value().id;
  }
  Result<WatchBatch> Watch(const std::string& prefix, int64_t from, int64_t seconds) {
    return rig_->Await(rig_->store().Watch(prefix, from, rig_->In(seconds)));
  }

  std::unique_ptr<StoreRig> rig_;
};

TEST_P(ControlStoreTest, WhatIsPutIsFoundByItsPrefixInOrder) {
  const std::string binary("\0\xff\n\"\x80", 5);
  ASSERT_THAT(Commit({}, {Put("/t/b", "2"), Put("/t/a", binary), Put("/u/c", "3")}), IsOk());
  const Snapshot snapshot = Range("/t/");
  ASSERT_EQ(snapshot.entries.size(), 2u);
  EXPECT_EQ(snapshot.entries[0].key, "/t/a");
  EXPECT_EQ(snapshot.entries[0].value, binary);
  EXPECT_EQ(snapshot.entries[0].create_revision, snapshot.revision);
  EXPECT_EQ(snapshot.entries[0].mod_revision, snapshot.revision);
  EXPECT_EQ(snapshot.entries[1].value, "2");
  EXPECT_TRUE(Range("/v/").entries.empty());
}

TEST_P(ControlStoreTest, RevisionsGrowWithEachChangeAndBelongToKeys) {
  const int64_t first = Commit({}, {Put("/t/a", "1")}).value().revision;
  const int64_t second = Commit({}, {Put("/t/a", "2")}).value().revision;
  EXPECT_GT(second, first);
  const KeyValue entry = Range("/t/a").entries.at(0);
  EXPECT_EQ(entry.create_revision, first);
  EXPECT_EQ(entry.mod_revision, second);
}

TEST_P(ControlStoreTest, ATransactionHappensWholeOrNotAtAll) {
  const int64_t revision = Commit({}, {Put("/t/a", "1")}).value().revision;
  auto lost = Commit({Modified("/t/a", revision - 1)}, {Put("/t/a", "2"), Put("/t/b", "2")});
  ASSERT_THAT(lost, IsOk());
  EXPECT_FALSE(lost.value().succeeded);
  EXPECT_EQ(Keys("/t/"), std::vector<std::string>{"/t/a"});
  auto won = Commit({Modified("/t/a", revision), Modified("/t/b", 0)},
                    {Put("/t/b", "2"), Delete("/t/a")});
  ASSERT_THAT(won, IsOk());
  EXPECT_TRUE(won.value().succeeded);
  EXPECT_EQ(Keys("/t/"), std::vector<std::string>{"/t/b"});
}

TEST_P(ControlStoreTest, AKeyThatIsMadeAnewHasAnotherCreateRevision) {
  const int64_t first = Commit({}, {Put("/t/a", "1")}).value().revision;
  ASSERT_THAT(Commit({}, {Delete("/t/a")}), IsOk());
  ASSERT_THAT(Commit({}, {Put("/t/a", "1")}), IsOk());
  Compare same_life = Modified("/t/a", first);
  same_life.field = Compare::Field::kCreateRevision;
  EXPECT_FALSE(Commit({same_life}, {Put("/t/a", "2")}).value().succeeded);
}

TEST_P(ControlStoreTest, PrefixesAreDeletedAndOnlyThey) {
  ASSERT_THAT(Commit({}, {Put("/t/a/1", ""), Put("/t/a/2", ""), Put("/t/b", "")}), IsOk());
  ASSERT_THAT(Commit({}, {Delete("/t/a/", Change::Kind::kDeletePrefix)}), IsOk());
  EXPECT_EQ(Keys("/t/"), std::vector<std::string>{"/t/b"});
}

TEST_P(ControlStoreTest, BadTransactionsAreRefused) {
  EXPECT_THAT(Commit({}, {Put("", "1")}), HasCode(Code::kInvalid));
  EXPECT_THAT(Commit({}, {Put("/t/a", "1"), Delete("/t/a")}), HasCode(Code::kInvalid));
  EXPECT_THAT(Commit({}, {Put("/t/a", std::string(kControlValueSizeMax, 'x'))}),
              HasCode(Code::kInvalid));
  EXPECT_THAT(Commit({}, {Put("/t/a", std::string(kMapPartSizeMax, 'x'))}), IsOk());
}

TEST_P(ControlStoreTest, AKeyLivesAsLongAsItsLease) {
  const NodeLeaseId lease = Grant(2);
  ASSERT_THAT(Commit({}, {Put("/t/a", "1", lease), Put("/t/b", "1")}), IsOk());
  EXPECT_EQ(Range("/t/a").entries.at(0).lease, lease);
  const int64_t revision = Range("/t/").revision;
  EXPECT_THAT(rig_->Await(rig_->store().KeepAlive(lease, rig_->In(10))), IsOk());
  const auto gone = Watch("/t/", revision + 1, 20);
  ASSERT_THAT(gone, IsOk());
  ASSERT_EQ(gone.value().events.size(), 1u);
  EXPECT_TRUE(gone.value().events[0].deleted);
  EXPECT_EQ(gone.value().events[0].entry.key, "/t/a");
  EXPECT_EQ(Keys("/t/"), std::vector<std::string>{"/t/b"});
  EXPECT_THAT(rig_->Await(rig_->store().KeepAlive(lease, rig_->In(10))),
              HasCode(Code::kNotFound));
  EXPECT_THAT(Commit({}, {Put("/t/c", "1", lease)}), HasCode(Code::kNotFound));
}

TEST_P(ControlStoreTest, RevokingALeaseTakesItsKeysAtOnce) {
  const NodeLeaseId lease = Grant(60);
  ASSERT_THAT(Commit({}, {Put("/t/a", "1", lease)}), IsOk());
  ASSERT_THAT(Commit({}, {Put("/t/b", "1", lease)}), IsOk());
  ASSERT_THAT(Commit({}, {Put("/t/b", "2")}), IsOk());  // Not under the lease any more.
  EXPECT_THAT(rig_->Await(rig_->store().Revoke(lease, rig_->In(10))), IsOk());
  EXPECT_EQ(Keys("/t/"), std::vector<std::string>{"/t/b"});
  EXPECT_THAT(rig_->Await(rig_->store().Revoke(lease, rig_->In(10))), IsOk());
}

TEST_P(ControlStoreTest, AWatchTellsWhatHappenedSince) {
  const int64_t first = Commit({}, {Put("/t/a", "1")}).value().revision;
  ASSERT_THAT(Commit({}, {Put("/t/b", "2"), Put("/u/b", "2")}), IsOk());
  const int64_t last = Commit({}, {Delete("/t/a")}).value().revision;
  std::vector<WatchEvent> events;
  for (int64_t from = first; from <= last;) {
    const auto batch = Watch("/t/", from, 10);
    ASSERT_THAT(batch, IsOk());
    ASSERT_FALSE(batch.value().events.empty());
    events.insert(events.end(), batch.value().events.begin(), batch.value().events.end());
    from = batch.value().next_revision;
  }
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].entry.value, "1");
  EXPECT_EQ(events[1].entry.key, "/t/b");
  EXPECT_TRUE(events[2].deleted);
  EXPECT_EQ(events[2].entry.mod_revision, last);
}

TEST_P(ControlStoreTest, AWatchWaitsAndEndsEmptyAtItsDeadline) {
  const int64_t revision = Commit({}, {Put("/t/a", "1")}).value().revision;
  const auto nothing = Watch("/t/", revision + 1, 1);
  ASSERT_THAT(nothing, IsOk());
  EXPECT_TRUE(nothing.value().events.empty());
  auto waiting = rig_->store().Watch("/t/", revision + 1, rig_->In(30));
  ASSERT_THAT(Commit({}, {Put("/t/c", "3")}), IsOk());
  const auto batch = rig_->Await(std::move(waiting));
  ASSERT_THAT(batch, IsOk());
  ASSERT_EQ(batch.value().events.size(), 1u);
  EXPECT_EQ(batch.value().events[0].entry.value, "3");
}

TEST_P(ControlStoreTest, WhileItIsAwayItSaysSoInTime) {
  ASSERT_THAT(Commit({}, {Put("/t/a", "1")}), IsOk());
  if (!rig_->SetAway(true)) return;  // One that lives in this process.
  for (int i = 0; i < 3; ++i) {
    const Instant deadline = rig_->In(1);
    const auto range = rig_->Await(rig_->store().Range("/t/", deadline));
    EXPECT_TRUE(range.code() == Code::kDeadline || range.code() == Code::kUnavailable);
  }
  rig_->SetAway(false);
  EXPECT_EQ(Keys("/t/"), std::vector<std::string>{"/t/a"});
}

TEST_P(ControlStoreTest, NamespacesAreMadeListedWatchedAndDeleted) {
  SpaceDirectory spaces(rig_->store(), ControlKeys("test"));
  SpaceRecord record;
  record.id.low = 7;
  record.name = "chat";
  record.fingerprint = "llama";
  EXPECT_THAT(rig_->Await(spaces.Create(record, rig_->In(10))), IsOk());
  EXPECT_THAT(rig_->Await(spaces.Create(record, rig_->In(10))), HasCode(Code::kConflict));
  const SpaceListing listing = rig_->Await(spaces.List(rig_->In(10))).value();
  ASSERT_EQ(listing.living.size(), 1u);
  EXPECT_EQ(listing.living[0], record);
  EXPECT_THAT(rig_->Await(spaces.Delete("chat", {1000}, rig_->In(10))), IsOk());
  EXPECT_THAT(rig_->Await(spaces.Delete("chat", {1000}, rig_->In(10))), HasCode(Code::kNotFound));
  EXPECT_TRUE(rig_->Await(spaces.AwaitChange(listing.revision, rig_->In(10))).value());
  const SpaceListing after = rig_->Await(spaces.List(rig_->In(10))).value();
  EXPECT_TRUE(after.living.empty());
  ASSERT_EQ(after.tombstones.size(), 1u);
  EXPECT_EQ(after.tombstones[0].id, record.id);
  // The id is burnt; the name is not.
  EXPECT_THAT(rig_->Await(spaces.Create(record, rig_->In(10))), HasCode(Code::kInvalid));
  record.id.low = 8;
  EXPECT_THAT(rig_->Await(spaces.Create(record, rig_->In(10))), IsOk());
}

// An agent and a coordinator on this store: the node is up, in a map that it follows.
TEST_P(ControlStoreTest, CarriesAClusterOfOne) {
  Random random(1);
  NullLog log;
  AgentOptions options;
  options.cluster = "test";
  options.self.name = "node-1";
  options.lease_ttl = Seconds(4);
  options.report_interval = Seconds(1);
  Agent agent(rig_->loop(), rig_->clock(), rig_->store(), random, log, options, nullptr);
  std::vector<TargetReport> targets(3);
  for (uint64_t i = 0; i < 3; ++i) targets[i].target = {.id = {i + 1}, .capacity = kTiB};
  agent.SetTargets(targets);
  UsageBySpace usage;
  usage[NamespaceId{}] = 5;
  agent.SetUsage(usage);
  CoordinatorOptions leader;
  leader.cluster = "test";
  leader.shape = {.group_bits = 4, .data_shards = 2, .parity_shards = 1,
                  .domain = FailureDomain::kTarget};
  leader.membership.steady_after = Seconds(1);
  leader.interval = Millis(200);
  leader.usage_interval = Seconds(1);
  Coordinator coordinator(rig_->loop(), rig_->clock(), rig_->store(), random, log, leader);
  coordinator.Start();
  ASSERT_THAT(rig_->Await(agent.Start(rig_->In(20))), IsOk());
  EXPECT_EQ(agent.id(), NodeId{1});
  rig_->RunUntil([&] {
    const auto map = agent.map();
    return map != nullptr && !map->sets().empty() && map->HomeOf(map->GroupOf(0)) == NodeId{1};
  });
  EXPECT_TRUE(agent.HoldsLease());
  const ControlKeys keys("test");
  agent.SetSlow(SlowReport{.by = {}, .asked = 7, .slow = {TargetId{2}, TargetId{3}}});
  const auto slow = [&] {
    auto members = ReadMemberReports(Range(keys.Members()), keys, rig_->clock().Now());
    return std::move(members.slow);
  };
  rig_->RunUntil([&] { return !slow().empty(); });
  EXPECT_EQ(slow()[0].by, NodeId{1});
  EXPECT_EQ(slow()[0].asked, 7u);
  EXPECT_THAT(slow()[0].slow, ElementsAre(TargetId{2}, TargetId{3}));
  agent.SetSlow(std::nullopt);
  rig_->RunUntil([&] { return slow().empty(); });
  SpaceDirectory spaces(rig_->store(), ControlKeys("test"));
  while (rig_->Await(spaces.Usage(rig_->In(10))).value() != usage) {
    rig_->Await(rig_->clock().SleepUntil(rig_->clock().Now() + Millis(100), nullptr));
  }
  rig_->Await(agent.Stop());
  EXPECT_FALSE(agent.HoldsLease());
  rig_->Await(coordinator.Stop());
  EXPECT_TRUE(Range(ControlKeys("test").Leader()).entries.empty());
}

INSTANTIATE_TEST_SUITE_P(Twins, ControlStoreTest,
                         ::testing::Values(Twin{"File", &NewFileRig}, Twin{"Sim", &NewSimRig},
                                           Twin{"Etcd", &NewEtcdRig}),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace cairn::kv
