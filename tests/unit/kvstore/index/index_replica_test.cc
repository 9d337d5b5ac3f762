// One replica of the index: what it files, forgets and remembers.
#include "kvstore/index/index_replica.h"

#include <gtest/gtest.h>

#include "tests/sim/memory_metadata.h"
#include "tests/support/status_matchers.h"

namespace cairn::kv {
namespace {

using sim::CrashMode;
using testing::HasCode;
using testing::IsOk;

IndexedStripe StripeOf(uint64_t run, uint64_t stripe) {
  IndexedStripe indexed;
  Manifest& manifest = indexed.manifest;
  manifest.stripe = StripeId{{3, stripe}};
  manifest.space = NamespaceId{{1, 1}};
  manifest.run = RunId{{2, run}};
  manifest.code_id = 1;
  manifest.data_shards = 1;
  manifest.parity_shards = 1;
  manifest.shard_size = 4096;
  manifest.retention = {.kind = RetentionKind::kRefreshed, .ttl_seconds = 10, .expires_at = {500}};
  manifest.targets = {{1}, {2}};
  manifest.blocks = {{.id = BlockId{{4, stripe}}, .offset = 0, .size = 9, .checksum = 7}};
  indexed.expires_at = {500};
  indexed.position = 5;
  return indexed;
}

class Replica {
 public:
  Replica() { Open(); }
  void Open() {
    view_ = metadata_.Open();
    auto replica = clock_.Await(IndexReplica::Open(*view_, log_));
    ASSERT_THAT(replica, IsOk());
    replica_ = std::move(replica).value();
  }
  void Crash(CrashMode mode) {
    metadata_.Crash(mode);
    Open();
  }
  Status Publish(const IndexedStripe& stripe, Durability durability = Durability::kProcess) {
    return clock_.Await(replica_->Publish(stripe, 100, durability));
  }
  std::vector<IndexedStripe> LookUp(uint64_t run) {
    return clock_.Await(replica_->LookUp(NamespaceId{{1, 1}}, RunId{{2, run}})).value();
  }
  Status Withdraw(const IndexedStripe& stripe) {
    const Manifest& manifest = stripe.manifest;
    return clock_.Await(replica_->Withdraw({manifest.space, manifest.run, manifest.stripe}));
  }
  IndexReplica& operator*() { return *replica_; }
  IndexReplica* operator->() { return replica_.get(); }
  sim::SimClock& clock() { return clock_; }
  MetadataStore& raw() { return *view_; }

 private:
  Loop loop_;
  sim::SimClock clock_{loop_};
  sim::MemoryMetadata metadata_{clock_, {}};
  NullLog log_;
  std::unique_ptr<MetadataStore> view_;
  std::unique_ptr<IndexReplica> replica_;
};

TEST(IndexReplica, FilesStripesByRun) {
  Replica replica;
  EXPECT_THAT(replica.Publish(StripeOf(1, 10)), IsOk());
  EXPECT_THAT(replica.Publish(StripeOf(1, 11)), IsOk());
  EXPECT_THAT(replica.Publish(StripeOf(2, 12)), IsOk());
  const auto found = replica.LookUp(1);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].manifest, StripeOf(1, 10).manifest);
  EXPECT_EQ(found[0].position, 5u);
  EXPECT_TRUE(replica.LookUp(3).empty());
}

TEST(IndexReplica, WithdrawnIsGoneAlsoAfterARestart) {
  Replica replica;
  EXPECT_THAT(replica.Publish(StripeOf(1, 10)), IsOk());
  EXPECT_THAT(replica.Withdraw(StripeOf(1, 10)), IsOk());
  EXPECT_TRUE(replica.LookUp(1).empty());
  replica.Crash(CrashMode::kProcess);
  EXPECT_TRUE(replica.LookUp(1).empty());
  EXPECT_EQ(replica->Find(StripeId{{3, 10}}), nullptr);
}

TEST(IndexReplica, StatesSurviveARestart) {
  Replica replica;
  EXPECT_THAT(replica.Publish(StripeOf(1, 10)), IsOk());
  replica->Touch(StripeId{{3, 10}}, 200, {9000});
  EXPECT_THAT(replica.clock().Await(replica->Flush()), IsOk());
  replica.Crash(CrashMode::kProcess);
  const StripeState* state = replica->Find(StripeId{{3, 10}});
  ASSERT_NE(state, nullptr);
  EXPECT_EQ(state->last_access, 200u);
  EXPECT_EQ(state->expires_at.value, 9000);
  EXPECT_EQ(replica.LookUp(1)[0].expires_at.value, 9000);
}

TEST(IndexReplica, ATouchNeverLowers) {
  Replica replica;
  EXPECT_THAT(replica.Publish(StripeOf(1, 10)), IsOk());
  EXPECT_FALSE(replica->Find(StripeId{{3, 10}})->hit);
  replica->Touch(StripeId{{3, 10}}, 50, {1});
  EXPECT_TRUE(replica->Find(StripeId{{3, 10}})->hit);
  EXPECT_EQ(replica->Find(StripeId{{3, 10}})->last_access, 100u);
  EXPECT_EQ(replica->Find(StripeId{{3, 10}})->expires_at.value, 500);
  EXPECT_FALSE(replica->has_touched());
}

TEST(IndexReplica, ADurablePublicationSurvivesAPowerCut) {
  Replica replica;
  EXPECT_THAT(replica.Publish(StripeOf(1, 10), Durability::kPowerCut), IsOk());
  replica.Crash(CrashMode::kPowerCut);
  EXPECT_EQ(replica.LookUp(1).size(), 1u);
}

TEST(IndexReplica, DamagedRecordsAreForgottenNotServed) {
  Replica replica;
  EXPECT_THAT(replica.Publish(StripeOf(1, 10)), IsOk());
  const Manifest manifest = StripeOf(1, 10).manifest;
  MetadataBatch damage;
  damage.Put(ManifestKey({manifest.space, manifest.run, manifest.stripe}), "junk");
  EXPECT_THAT(replica.clock().Await(replica.raw().Write(damage)), IsOk());
  EXPECT_TRUE(replica.LookUp(1).empty());
  EXPECT_EQ(replica->damaged_records(), 1u);
}

TEST(IndexCodec, StatesAndNamespacesComeBackEqual) {
  const StripeState state{.space = NamespaceId{{1, 2}},
                          .run = RunId{{3, 4}},
                          .expires_at = {-5},
                          .last_access = 6,
                          .position = 7,
                          .ttl_seconds = 8,
                          .kind = RetentionKind::kFixed};
  EXPECT_EQ(DecodeState(EncodeState(state)).value(), state);
  const SpaceRecord space{.id = NamespaceId{{1, 2}},
                          .name = "name",
                          .fingerprint = std::string("f\0p", 3),
                          .data_shards = 10,
                          .parity_shards = 2,
                          .run_blocks = 64,
                          .retention = RetentionKind::kFixed,
                          .ttl_seconds = 9};
  EXPECT_EQ(DecodeSpace(EncodeSpace(space)).value(), space);
}

TEST(IndexCodec, EveryFlippedBitAndEveryLengthIsNoticed) {
  const std::string good = EncodeState(StripeState{});
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    EXPECT_THAT(DecodeState(bad), HasCode(Code::kCorrupt)) << bit;
  }
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_THAT(DecodeState(good.substr(0, size)), HasCode(Code::kCorrupt)) << size;
  }
}

}  // namespace
}  // namespace cairn::kv
