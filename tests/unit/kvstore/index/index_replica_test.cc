// One replica of the index: what it files, forgets and remembers.
#include "kvstore/index/index_replica.h"

#include <gtest/gtest.h>

#include "kvstore/base/checksum.h"
#include "tests/sim/memory_metadata.h"
#include "tests/sim/sim_workers.h"
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
    auto replica = clock_.Await(IndexReplica::Open(*view_, workers_, log_));
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
  void FailNext() { metadata_.FailWrite(1); }
  IndexReplica& operator*() { return *replica_; }
  IndexReplica* operator->() { return replica_.get(); }
  sim::SimClock& clock() { return clock_; }
  MetadataStore& raw() { return *view_; }

 private:
  Loop loop_;
  sim::SimClock clock_{loop_};
  sim::SimWorkers workers_{clock_, 1};
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

TEST(IndexReplica, ReadsOneStripeOfARunAsItWasLastFiled) {
  Replica replica;
  for (uint64_t i = 10; i < 13; ++i) EXPECT_THAT(replica.Publish(StripeOf(1, i)), IsOk());
  IndexedStripe moved = StripeOf(1, 11);
  ++moved.manifest.generation;
  EXPECT_THAT(replica.Publish(moved), IsOk());
  const auto read = replica.clock().Await(replica->ReadFiled(moved.manifest.stripe));
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read.value().manifest, moved.manifest);
  EXPECT_EQ(read.value().position, 5u);
  EXPECT_THAT(replica.Withdraw(moved), IsOk());
  EXPECT_THAT(replica.clock().Await(replica->ReadFiled(moved.manifest.stripe)),
              HasCode(Code::kNotFound));
}

TEST(IndexReplica, WithdrawnIsGoneAlsoAfterARestart) {
  Replica replica;
  EXPECT_THAT(replica.Publish(StripeOf(1, 10)), IsOk());
  EXPECT_THAT(replica.Withdraw(StripeOf(1, 10)), IsOk());
  EXPECT_TRUE(replica.LookUp(1).empty());
  replica.Crash(CrashMode::kProcess);
  EXPECT_TRUE(replica.LookUp(1).empty());
  EXPECT_FALSE(replica->Has(StripeId{{3, 10}}));
}

TEST(IndexReplica, ACopyIsAsOldAsWhatItIsACopyOf) {
  Replica replica;
  IndexedStripe copy = StripeOf(1, 10);
  copy.last_access = 40;
  copy.hit = true;
  EXPECT_THAT(replica.Publish(copy), IsOk());  // At 100 seconds.
  EXPECT_THAT(replica.Publish(StripeOf(1, 11)), IsOk());
  for (int open = 0; open < 2; ++open) {
    EXPECT_EQ(replica->Find(StripeId{{3, 10}})->last_access, 40u);
    EXPECT_TRUE(replica->Find(StripeId{{3, 10}})->hit);
    EXPECT_EQ(replica->Find(StripeId{{3, 11}})->last_access, 100u);
    EXPECT_FALSE(replica->Find(StripeId{{3, 11}})->hit);
    EXPECT_EQ(replica.LookUp(1).front().last_access, 40u);
    replica.Crash(CrashMode::kProcess);
  }
}

TEST(IndexReplica, RemembersRemovalsUntilTheyAreForgotten) {
  Replica replica;
  const StripeId stripe{{3, 10}};
  EXPECT_THAT(replica.clock().Await(replica->SaveRemoval(stripe)), IsOk());
  replica.Crash(CrashMode::kPowerCut);
  EXPECT_EQ(replica.clock().Await(replica->ListRemovals()).value(), std::vector{stripe});
  EXPECT_THAT(replica.clock().Await(replica->ForgetRemovals({stripe})), IsOk());
  EXPECT_TRUE(replica.clock().Await(replica->ListRemovals()).value().empty());
}

TEST(IndexReplica, StatesSurviveARestart) {
  Replica replica;
  EXPECT_THAT(replica.Publish(StripeOf(1, 10)), IsOk());
  replica->Touch(StripeId{{3, 10}},
                 {.expires_at = {9000}, .last_access = 200, .keep_until = 77});
  EXPECT_THAT(replica.clock().Await(replica->Flush()), IsOk());
  replica.Crash(CrashMode::kProcess);
  const std::optional<StripeState> state = replica->Find(StripeId{{3, 10}});
  ASSERT_TRUE(state.has_value());
  EXPECT_EQ(state->last_access, 200u);
  EXPECT_TRUE(state->hit);
  EXPECT_EQ(state->expires_at.value, 9000);
  EXPECT_EQ(state->keep_until, 77u);
  EXPECT_EQ(state->position, 5u);
  EXPECT_EQ(state->payload_bytes, 4096u);
  EXPECT_EQ(state->ttl_seconds, 10u);
  EXPECT_EQ(replica.LookUp(1)[0].expires_at.value, 9000);
}

TEST(IndexReplica, ATouchNeverLowers) {
  Replica replica;
  EXPECT_THAT(replica.Publish(StripeOf(1, 10)), IsOk());
  EXPECT_FALSE(replica->Find(StripeId{{3, 10}})->hit);
  const StripeUse early{.expires_at = {1}, .last_access = 50, .keep_until = 0};
  replica->Touch(StripeId{{3, 10}}, early);
  EXPECT_TRUE(replica->Find(StripeId{{3, 10}})->hit);
  EXPECT_THAT(replica.clock().Await(replica->Flush()), IsOk());
  replica->Touch(StripeId{{3, 10}}, early);
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

TEST(IndexReplica, WhatAFailedFlushTookIsWrittenByTheNext) {
  Replica replica;
  EXPECT_THAT(replica.Publish(StripeOf(1, 10)), IsOk());
  replica->Touch(StripeId{{3, 10}}, {.expires_at = {9000}, .last_access = 200, .keep_until = 0});
  replica.FailNext();
  EXPECT_THAT(replica.clock().Await(replica->Flush()), HasCode(Code::kUnavailable));
  EXPECT_TRUE(replica->has_touched());
  EXPECT_THAT(replica.clock().Await(replica->Flush()), IsOk());
  replica.Crash(CrashMode::kProcess);
  EXPECT_EQ(replica->Find(StripeId{{3, 10}})->last_access, 200u);
}

TEST(IndexReplica, NamesEveryStripeInPieces) {
  Replica replica;
  for (uint64_t i = 0; i < 10; ++i) {
    EXPECT_THAT(replica.Publish(StripeOf(i % 3, i)), IsOk());
  }
  std::vector<StripeName> names;
  std::optional<StripeId> after;
  int pieces = 0;
  do {
    const auto page = replica.clock().Await(replica->ListNames(after, 4)).value();
    names.insert(names.end(), page.names.begin(), page.names.end());
    after = page.next;
    ++pieces;
  } while (after);
  EXPECT_EQ(pieces, 3);
  ASSERT_EQ(names.size(), 10u);
  for (uint64_t i = 0; i < 10; ++i) {
    const StripeName expected{NamespaceId{{1, 1}}, RunId{{2, i % 3}}, StripeId{{3, i}}};
    EXPECT_EQ(names[i], expected);
    EXPECT_EQ(replica.clock().Await(replica->NameOf(expected.stripe)).value(), expected);
  }
  const StripeId other{{3, 99}};
  EXPECT_THAT(replica.clock().Await(replica->NameOf(other)), HasCode(Code::kNotFound));
}

TEST(IndexReplica, ReadsWhatVersion1Wrote) {
  Replica replica;
  // A record of version 1: what follows the kind came with version 2.
  StripeRecord record{.run = RunId{{2, 1}}, .state = {}};
  record.state.space = NamespaceId{{1, 1}};
  record.state.expires_at = {7000};
  record.state.last_access = 6;
  std::string old = EncodeRecord(record).substr(0, 1 + 16 + 16 + 8 + 4 + 4 + 4 + 1);
  old[0] = 1;
  const uint64_t checksum = Checksum(AsBytes(old));
  for (int shift = 0; shift < 64; shift += 8) old.push_back(static_cast<char>(checksum >> shift));
  MetadataBatch batch;
  batch.Put(StateKey(StripeId{{3, 10}}), old);
  EXPECT_THAT(replica.clock().Await(replica.raw().Write(batch)), IsOk());
  replica.Open();
  const std::optional<StripeState> state = replica->Find(StripeId{{3, 10}});
  ASSERT_TRUE(state.has_value());
  EXPECT_EQ(*state, record.state);
}

TEST(StateTable, NumbersNamespacesOnlyWhileTheyHaveStripes) {
  StateTable table;
  StripeState state;
  for (uint64_t i = 0; i < 65536; ++i) {
    state.space = NamespaceId{{1, i}};
    ASSERT_THAT(table.Set(StripeId{{5, i}}, state), IsOk());
  }
  state.space = NamespaceId{{1, 65536}};
  EXPECT_THAT(table.Set(StripeId{{5, 65536}}, state), HasCode(Code::kOverloaded));
  EXPECT_TRUE(table.Erase(StripeId{{5, 123}}));
  ASSERT_THAT(table.Set(StripeId{{5, 65536}}, state), IsOk());
  EXPECT_EQ(table.Find(StripeId{{5, 65536}})->space, state.space);
  const NamespaceId other{{1, 124}};
  EXPECT_EQ(table.Find(StripeId{{5, 124}})->space, other);
}

TEST(StateTable, KeepsWhatFitsExactly) {
  StateTable table;
  const StripeId stripe{{5, 1}};
  StripeState state{.space = NamespaceId{{1, 2}},
                    .expires_at = {4'102'444'800'999},  // In 2100.
                    .last_access = 4'000'000'000,
                    .keep_until = 4'000'000'001,
                    .position = (1 << 22) - 1,
                    .ttl_seconds = 200'000'000,
                    .payload_bytes = 64 << 20,
                    .kind = RetentionKind::kFixed,
                    .hit = true};
  ASSERT_THAT(table.Set(stripe, state), IsOk());
  EXPECT_EQ(table.Find(stripe), state);
  // Beyond what fits: the largest there is, never a wrap.
  state.expires_at = {int64_t{1} << 60};
  state.position = 1 << 22;
  state.ttl_seconds = 1 << 28;
  ASSERT_THAT(table.Set(stripe, state), IsOk());
  EXPECT_EQ(table.Find(stripe)->expires_at.value, (int64_t{1} << 42) - 1);
  EXPECT_EQ(table.Find(stripe)->position, (1u << 22) - 1);
  EXPECT_EQ(table.Find(stripe)->ttl_seconds, (1u << 28) - 1);
  state.expires_at = {-5};
  ASSERT_THAT(table.Set(stripe, state), IsOk());
  EXPECT_EQ(table.Find(stripe)->expires_at.value, 0);
}

TEST(IndexCodec, RecordsComeBackEqual) {
  const StripeRecord record{.run = RunId{{3, 4}},
                            .state = {.space = NamespaceId{{1, 2}},
                                      .expires_at = {-5},
                                      .last_access = 6,
                                      .keep_until = 10,
                                      .position = 7,
                                      .ttl_seconds = 8,
                                      .payload_bytes = 9,
                                      .kind = RetentionKind::kFixed,
                                      .hit = false}};
  EXPECT_EQ(DecodeRecord(EncodeRecord(record)).value(), record);
  const StripeUse use{.expires_at = {-5}, .last_access = 6, .keep_until = 7};
  EXPECT_EQ(DecodeUse(EncodeUse(use)).value(), use);
  const SpaceRecord space{.id = NamespaceId{{1, 2}},
                          .name = "name",
                          .fingerprint = std::string("f\0p", 3),
                          .data_shards = 10,
                          .parity_shards = 2,
                          .run_blocks = 64,
                          .retention = RetentionKind::kFixed,
                          .ttl_seconds = 9};
  EXPECT_EQ(DecodeSpace(EncodeSpace(space)).value(), space);
  SpaceRecord guarded = space;
  guarded.in_memory = true;
  guarded.quota_bytes = uint64_t{1} << 40;
  guarded.created_at = {12345};
  guarded.token_key.emplace();
  guarded.token_key->digest[0] = 7;
  guarded.token_key->digest[31] = 9;
  EXPECT_EQ(DecodeSpace(EncodeSpace(guarded)).value(), guarded);
}

TEST(IndexReplica, ATombstoneTakesThePlaceOfItsNamespaceOnly) {
  Replica replica;
  SpaceRecord space;
  space.id = NamespaceId{{1, 2}};
  space.name = "n";
  EXPECT_THAT(replica.clock().Await(replica->SaveSpace(space)), IsOk());
  SpaceRecord tombstone = space;
  tombstone.deleted_at = {5};
  EXPECT_THAT(replica.clock().Await(replica->SaveSpace(tombstone)), IsOk());
  EXPECT_EQ(replica.clock().Await(replica->ListSpaces()).value(),
            std::vector<SpaceRecord>{tombstone});
  space.id = NamespaceId{{1, 3}};  // The name is used again.
  EXPECT_THAT(replica.clock().Await(replica->SaveSpace(space)), IsOk());
  EXPECT_THAT(replica.clock().Await(replica->SaveSpace(tombstone)), IsOk());
  replica.Crash(CrashMode::kPowerCut);
  EXPECT_EQ(replica.clock().Await(replica->ListSpaces()).value(),
            (std::vector<SpaceRecord>{space, tombstone}));
}

TEST(IndexReplica, ListsTheManifestsOfOneNamespaceInPieces) {
  Replica replica;
  for (uint64_t i = 0; i < 5; ++i) EXPECT_THAT(replica.Publish(StripeOf(5 - i, i)), IsOk());
  IndexedStripe other = StripeOf(1, 9);
  other.manifest.space = NamespaceId{{1, 2}};
  EXPECT_THAT(replica.Publish(other), IsOk());
  std::vector<uint64_t> runs;
  std::string after;
  do {
    const auto page =
        replica.clock().Await(replica->ListManifests(NamespaceId{{1, 1}}, after, 2)).value();
    EXPECT_LE(page.manifests.size(), 2u);
    for (const auto& [key, manifest] : page.manifests) runs.push_back(manifest.run.low);
    after = page.next;
  } while (!after.empty());
  EXPECT_EQ(runs, (std::vector<uint64_t>{1, 2, 3, 4, 5}));
}

// All that version 1 wrote, and later ones begin with, but for the checksum.
std::string OldSpace(char version) {
  std::string bytes(1, version);
  bytes.append("\0\0\0\0\0\0\0\x01", 8).append("\0\0\0\0\0\0\0\x02", 8);
  bytes.append("\x02\0\0\0", 4).append("ab").append("\x01\0\0\0", 4).append("f");
  bytes.append("\x0a\x02", 2).append("\x40\0\0\0", 4).append("\x01", 1);
  return bytes.append("\x09\0\0\0", 4);
}

std::string Sealed(std::string bytes) {
  const uint64_t checksum = Checksum(AsBytes(bytes));
  for (int shift = 0; shift < 64; shift += 8) bytes.push_back(static_cast<char>(checksum >> shift));
  return bytes;
}

// As version 1 wrote it: byte for byte what docs/formats/index.md said of it.
TEST(IndexCodec, NamespacesOfVersion1AreRead) {
  const std::string bytes = Sealed(OldSpace(1));
  const SpaceRecord space{.id = NamespaceId{{1, 2}},
                          .name = "ab",
                          .fingerprint = "f",
                          .data_shards = 10,
                          .parity_shards = 2,
                          .run_blocks = 64,
                          .retention = RetentionKind::kRefreshed,
                          .ttl_seconds = 9};
  ASSERT_THAT(DecodeSpace(bytes), IsOk());
  EXPECT_EQ(DecodeSpace(bytes).value(), space);
}

TEST(IndexCodec, TokensOfVersion2AreReadAsOnesThatNobodyKnows) {
  std::string open = OldSpace(2);
  open.append(1, '\0').append(8, '\0').append("\x05", 1).append(7, '\0').append(8, '\0');
  std::string guarded = open;
  open.append(1, '\0');
  guarded.append(1, '\x01').append(16, 's').append(32, 'd');
  const auto unguarded = DecodeSpace(Sealed(open));
  ASSERT_THAT(unguarded, IsOk());
  EXPECT_FALSE(unguarded.value().token_key.has_value());
  EXPECT_EQ(unguarded.value().created_at, UnixMillis{5});
  const auto closed = DecodeSpace(Sealed(guarded));
  ASSERT_THAT(closed, IsOk());
  EXPECT_EQ(closed.value().token_key, StoredKey());
  EXPECT_EQ(DecodeSpace(EncodeSpace(closed.value())).value(), closed.value());
  EXPECT_THAT(DecodeSpace(Sealed(guarded.substr(0, guarded.size() - 1))),
              HasCode(Code::kCorrupt));
  EXPECT_THAT(DecodeSpace(Sealed(OldSpace(4))), HasCode(Code::kCorrupt));
}

template <typename Decode>
void ExpectEveryDamageNoticed(const std::string& good, Decode decode) {
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    EXPECT_THAT(decode(bad), HasCode(Code::kCorrupt)) << bit;
  }
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_THAT(decode(good.substr(0, size)), HasCode(Code::kCorrupt)) << size;
  }
}

TEST(IndexCodec, EveryFlippedBitAndEveryLengthIsNoticed) {
  ExpectEveryDamageNoticed(EncodeRecord(StripeRecord{}), DecodeRecord);
  ExpectEveryDamageNoticed(EncodeUse(StripeUse{}), DecodeUse);
}

}  // namespace
}  // namespace cairn::kv
