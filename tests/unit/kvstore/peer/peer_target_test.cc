// One set of promises for a target at hand and for one behind each transport; then what only the
// latter has: epochs, batches, limits, and calls that break.
#include "kvstore/peer/peer_target.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "kvstore/base/checksum.h"
#include "kvstore/peer/peer_service.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/kvstore/peer/target_world.h"

namespace cairn::kv {
namespace {

using testing::HasCode;
using testing::IsOk;

constexpr NodeId kClient{1};
constexpr NodeId kServer{2};
constexpr uint32_t kShardSize = 64 * kKiB;

class TargetTest : public ::testing::TestWithParam<RigKind> {
 protected:
  void SetUp() override {
    rig_ = GetParam().make();
    if (rig_ == nullptr) GTEST_SKIP() << "no " << GetParam().name << " on this machine";
    world_ = std::make_unique<TargetWorld>(*rig_);
    local_ = &world_->AddTarget();
    StartService();
    caller_ = std::make_unique<PeerCaller>(rig_->loop(), rig_->clock(), rig_->node(kClient),
                                           client_map_);
    if (IsLocal()) return;
    const PeerTargetOptions options{
        .read_timeout = Seconds(20), .write_timeout = Seconds(20), .flush_every = Millis(20)};
    peer_ = std::make_unique<PeerTarget>(rig_->loop(), *caller_, kServer, local_->id(), options);
  }
  void TearDown() override {
    if (peer_ != nullptr) world_->Await(peer_->Stop());
    peer_.reset();
    if (caller_ != nullptr) world_->Await(caller_->Stop());
    world_.reset();
    rig_.reset();
  }
  virtual bool IsLocal() const { return GetParam().name == "AtHand"; }

  void StartService() {
    service_ = std::make_unique<PeerService>(
        rig_->clock(), server_map_,
        [this](TargetId id) { return id == local_->id() ? local_ : nullptr; }, limits_);
    rig_->node(kClient);
    service_->Serve(rig_->node(kServer));
  }
  TargetPort& target() { return peer_ == nullptr ? static_cast<TargetPort&>(*local_) : *peer_; }
  template <typename T>
  T Await(Task<T> task) {
    return world_->Await(std::move(task));
  }
  Status Flush() { return peer_ == nullptr ? Status() : Await(peer_->Flush()); }

  static Manifest ManifestOf(uint64_t i) {
    Manifest manifest;
    manifest.stripe = StripeId{{0x5000 + i, i * 0x9e3779b97f4a7c15}};
    manifest.space = NamespaceId{{1, 2}};
    manifest.run = RunId{{3, i / 100}};
    manifest.data_shards = 1;
    manifest.parity_shards = 1;
    manifest.shard_size = kShardSize;
    manifest.retention = {.kind = RetentionKind::kRefreshed, .ttl_seconds = 1000,
                          .expires_at = {1'800'000'000'000}};
    manifest.targets = {TargetId{1}, TargetId{2}};
    manifest.blocks = {{.id = BlockId{{7, i}}, .offset = 0, .size = kShardSize, .checksum = i}};
    return manifest;
  }
  static IndexedStripe Indexed(uint64_t i) {
    IndexedStripe stripe;
    stripe.manifest = ManifestOf(i);
    stripe.expires_at = stripe.manifest.retention.expires_at;
    return stripe;
  }
  static StripeName NameOf(uint64_t i) {
    const Manifest manifest = ManifestOf(i);
    return {manifest.space, manifest.run, manifest.stripe};
  }
  static Bytes ShardOf(uint64_t i) {
    Bytes bytes(kShardSize);
    Random random(i);
    random.Fill(bytes.span());
    return bytes;
  }
  Status Append(uint64_t i) {
    const Manifest manifest = ManifestOf(i);
    const Bytes shard = ShardOf(i);
    const ShardPayload payload{shard.span(), Checksum(shard.span())};
    return Await(target().Append(manifest, ShardIndex{0}, payload));
  }
  // The outcome; kCorrupt when the bytes are not those that were appended.
  Status Read(uint64_t i, uint32_t offset, size_t size, std::optional<uint64_t> checksum = {}) {
    Bytes into(size);
    SegmentLog::Range range{.stripe = ManifestOf(i).stripe, .index = {}, .offset = offset,
                            .into = into.span(), .checksum = checksum,
                            .checked_size = checksum ? static_cast<uint32_t>(size) : 0};
    const Status outcome = Await(target().Read(range));
    if (!outcome.ok()) return outcome;
    const Bytes whole = ShardOf(i);
    const bool same = std::equal(into.data(), into.data() + size, whole.data() + offset);
    return same ? Status() : Status(Code::kCorrupt, "wrong bytes");
  }
  void Publish(uint64_t i) {
    EXPECT_THAT(Await(target().Publish(Indexed(i), Durability::kProcess)), IsOk());
  }

  std::unique_ptr<NetworkRig> rig_;
  std::unique_ptr<TargetWorld> world_;
  LocalTarget* local_ = nullptr;
  FakeMap client_map_;
  FakeMap server_map_;
  PeerServiceOptions limits_;
  std::unique_ptr<PeerService> service_;
  std::unique_ptr<PeerCaller> caller_;
  std::unique_ptr<PeerTarget> peer_;
};


std::vector<RigKind> WithAtHand() {
  std::vector<RigKind> kinds = Rigs();
  kinds.push_back({"AtHand", [] { return MakeSimRig(); }});
  return kinds;
}
std::string NameOfKind(const ::testing::TestParamInfo<RigKind>& kind) { return kind.param.name; }

class TargetAnywhere : public TargetTest {};
INSTANTIATE_TEST_SUITE_P(Targets, TargetAnywhere, ::testing::ValuesIn(WithAtHand()), NameOfKind);
class TargetOfPeer : public TargetTest {};
INSTANTIATE_TEST_SUITE_P(Transports, TargetOfPeer, ::testing::ValuesIn(Rigs()), NameOfKind);

// --- Near or far --------------------------------------------------------------------------------

TEST_P(TargetAnywhere, SaysWhichShardsItHolds) {
  ASSERT_THAT(Append(1), IsOk());
  const StripeId stripe = ManifestOf(1).stripe;
  std::vector<Task<Status>> asked;  // They leave together.
  asked.push_back(target().Holds(stripe, {0}));
  asked.push_back(target().Holds(stripe, {1}));
  asked.push_back(target().Holds(ManifestOf(2).stripe, {0}));
  EXPECT_THAT(Await(std::move(asked[0])), IsOk());
  EXPECT_THAT(Await(std::move(asked[1])), HasCode(Code::kNotFound));
  EXPECT_THAT(Await(std::move(asked[2])), HasCode(Code::kNotFound));
  ASSERT_THAT(Await(target().Drop(stripe)), IsOk());
  EXPECT_THAT(Await(target().Holds(stripe, {0})), HasCode(Code::kNotFound));
}

TEST_P(TargetAnywhere, WhatIsAppendedReadsBackExact) {
  ASSERT_THAT(Append(1), IsOk());
  EXPECT_THAT(Append(1), IsOk());  // Writes nothing.
  EXPECT_EQ(local_->log().stats().records_appended, 1u);
  EXPECT_THAT(Read(1, 0, kShardSize), IsOk());
  EXPECT_THAT(Read(1, 3 * kSectorSize, 2 * kSectorSize), IsOk());
  const Bytes shard = ShardOf(1);
  EXPECT_THAT(Read(1, 0, kSectorSize, Checksum(shard.span().first(kSectorSize))), IsOk());
  EXPECT_THAT(Read(1, 0, kSectorSize, 42), HasCode(Code::kCorrupt));
  EXPECT_THAT(Read(2, 0, kSectorSize), HasCode(Code::kNotFound));
  Bytes into(kShardSize);
  EXPECT_THAT(Await(target().ReadVerified(ManifestOf(1).stripe, ShardIndex{0}, into.span())),
              IsOk());
  EXPECT_TRUE(std::equal(into.data(), into.data() + kShardSize, shard.data()));
  EXPECT_THAT(Await(target().Sync()), IsOk());
  EXPECT_EQ(target().free_bytes(), local_->free_bytes());
}

TEST_P(TargetAnywhere, DroppedShardsAreGone) {
  std::vector<Task<Status>> drops;
  for (uint64_t i = 0; i < 20; ++i) ASSERT_THAT(Append(i), IsOk());
  for (uint64_t i = 0; i < 30; ++i) drops.push_back(target().Drop(ManifestOf(i).stripe));
  for (Task<Status>& drop : drops) EXPECT_THAT(Await(std::move(drop)), IsOk());
  for (uint64_t i = 0; i < 20; ++i) EXPECT_THAT(Read(i, 0, kSectorSize), HasCode(Code::kNotFound));
}

TEST_P(TargetAnywhere, FilesStripesUnderTheirRun) {
  for (uint64_t i = 98; i < 103; ++i) Publish(i);
  auto found = Await(target().LookUp(NamespaceId{{1, 2}}, RunId{{3, 1}}));
  ASSERT_THAT(found, IsOk());
  ASSERT_EQ(found.value().size(), 3u);
  const auto same = [](const IndexedStripe& stripe) { return stripe.manifest == ManifestOf(101); };
  EXPECT_TRUE(std::any_of(found.value().begin(), found.value().end(), same));
  const auto one = Await(target().ReadFiled(ManifestOf(101).stripe));
  ASSERT_THAT(one, IsOk());
  EXPECT_TRUE(same(one.value()));
  auto name = Await(target().NameOf(ManifestOf(99).stripe));
  ASSERT_THAT(name, IsOk());
  EXPECT_EQ(name.value(), NameOf(99));
  EXPECT_THAT(Await(target().Withdraw(NameOf(99))), IsOk());
  EXPECT_THAT(Await(target().Withdraw(NameOf(99))), IsOk());
  EXPECT_THAT(Await(target().NameOf(ManifestOf(99).stripe)), HasCode(Code::kNotFound));
  EXPECT_THAT(Await(target().ReadFiled(ManifestOf(99).stripe)), HasCode(Code::kNotFound));
}

TEST_P(TargetAnywhere, ListsWhatIsFiledInPieces) {
  for (uint64_t i = 0; i < 25; ++i) Publish(i);
  std::vector<StripeId> seen;
  std::optional<StripeId> after;
  for (;;) {
    auto page = Await(target().ListFiled(after, 10));
    ASSERT_THAT(page, IsOk());
    for (const TargetPort::Filed& filed : page.value()) {
      seen.push_back(filed.stripe);
      EXPECT_EQ(filed.state, local_->StateOf(filed.stripe));
    }
    if (page.value().size() < 10) break;
    after = seen.back();
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen.size(), 25u);
  EXPECT_EQ(std::unique(seen.begin(), seen.end()), seen.end());
}

TEST_P(TargetAnywhere, HitsRaiseWhatIsKnownOfAStripe) {
  Publish(1);
  const StripeId stripe = ManifestOf(1).stripe;
  const UnixMillis later{1'900'000'000'000};
  target().Touch(stripe, {.expires_at = later, .last_access = 5, .keep_until = 0});
  target().Touch(stripe, {.expires_at = {}, .last_access = 9, .keep_until = 7});
  ASSERT_THAT(Flush(), IsOk());
  EXPECT_EQ(local_->StateOf(stripe)->expires_at, later);
  EXPECT_EQ(local_->StateOf(stripe)->keep_until, 7u);
  target().Touch(stripe, {.expires_at = {}, .last_access = 9, .keep_until = 70});
  EXPECT_THAT(Await(target().SaveUse(stripe)), IsOk());
  EXPECT_EQ(local_->StateOf(stripe)->keep_until, 70u);
}

TEST_P(TargetAnywhere, NotesRemovals) {
  const StripeId stripe = ManifestOf(1).stripe;
  EXPECT_THAT(Await(target().SaveRemoval(stripe)), IsOk());
  EXPECT_EQ(Await(local_->index().ListRemovals()).value(), std::vector{stripe});
}

TEST_P(TargetAnywhere, KeepsNamespaces) {
  for (int i = 0; i < 600; ++i) {  // Of 4 KiB each: more than a page.
    SpaceRecord record;
    record.id = NamespaceId{{9, static_cast<uint64_t>(i)}};
    record.name = "space-" + std::to_string(1000 + i);
    record.fingerprint = std::string(4000, 'f');
    record.run_blocks = 8;
    ASSERT_THAT(Await(target().SaveSpace(record)), IsOk());
  }
  auto spaces = Await(target().ListSpaces());
  ASSERT_THAT(spaces, IsOk());
  ASSERT_EQ(spaces.value().size(), 600u);
  EXPECT_EQ(spaces.value()[599].name, "space-1599");
}

// --- Far ----------------------------------------------------------------------------------------

TEST_P(TargetOfPeer, HintsPromiseNothing) {
  EXPECT_TRUE(target().MayHold(ManifestOf(1).stripe, ShardIndex{0}));
  EXPECT_TRUE(target().MayHaveFiled(ManifestOf(1).stripe));
  Publish(1);
  EXPECT_FALSE(target().StateOf(ManifestOf(1).stripe).has_value());
}

TEST_P(TargetOfPeer, ASilentPeerIsAskedForItsFreeSpaceAndHitsLeaveByThemselves) {
  world_->RunUntil([this] { return target().free_bytes() > 0; });
  EXPECT_EQ(target().free_bytes(), local_->free_bytes());
  Publish(1);
  const StripeId stripe = ManifestOf(1).stripe;
  target().Touch(stripe, {.expires_at = {}, .last_access = 0, .keep_until = 7});
  world_->RunUntil([&] { return local_->StateOf(stripe)->keep_until == 7; });
}

TEST_P(TargetOfPeer, WhoeverHasTheOlderMapHearsOfTheNewer) {
  server_map_.now = 8;
  ASSERT_THAT(Await(target().Sync()), IsOk());
  ASSERT_FALSE(client_map_.newer.empty());
  EXPECT_EQ(client_map_.newer.back(), std::pair(kServer, uint64_t{8}));
  EXPECT_TRUE(server_map_.newer.empty());
  for (const size_t size : {size_t{3}, size_t{5'000'000}}) {
    server_map_.size = size;
    const auto map = Await(caller_->FetchMap(kServer, rig_->clock().Now() + Seconds(20)));
    ASSERT_THAT(map, IsOk());
    EXPECT_EQ(AsText(map.value()), std::string(size, 'm') + " 8");
  }
  client_map_.now = 9;
  ASSERT_THAT(Await(target().Sync()), IsOk());
  ASSERT_FALSE(server_map_.newer.empty());
  EXPECT_EQ(server_map_.newer.back(), std::pair(kClient, uint64_t{9}));
}

TEST_P(TargetOfPeer, ANodeAnswersProbesOfItself) {
  for (const TargetId target : {TargetId(), TargetId{12345}}) {
    PeerCaller::Order probe{.node = kServer, .target = target};
    probe.message = peer::Encode(peer::ProbeRequest()).value();
    probe.deadline = rig_->clock().Now() + Seconds(20);
    const auto answer = Await(caller_->Ask(std::move(probe)));
    ASSERT_THAT(answer, IsOk());
    const auto done = peer::ParseAnswer<peer::Nothing>(answer.value().fields());
    EXPECT_EQ(done.code(), target == TargetId() ? Code::kOk : Code::kUnavailable);
  }
}

TEST_P(TargetOfPeer, ATargetThatIsNotThereIsUnavailable) {
  PeerTarget other(rig_->loop(), *caller_, kServer, TargetId{12345}, {});
  EXPECT_THAT(Await(other.Sync()), HasCode(Code::kUnavailable));
  Await(other.Stop());
}

TEST_P(TargetOfPeer, ManyDropsLeaveInFewRequests) {
  ASSERT_THAT(Await(target().Sync()), IsOk());
  const uint64_t before = service_->stats().requests;
  std::vector<Task<Status>> drops;
  for (uint64_t i = 0; i < 500; ++i) drops.push_back(target().Drop(ManifestOf(i).stripe));
  for (Task<Status>& drop : drops) EXPECT_THAT(Await(std::move(drop)), IsOk());
  // One alone, the rest together; probes may come between.
  EXPECT_LE(service_->stats().requests - before, 20u);
}

TEST_P(TargetOfPeer, MoreThanASourceMayHaveInWorkIsOverloaded) {
  rig_->Kill(kServer);
  limits_ = {.source_bytes_max = kShardSize, .bytes_max = kShardSize};
  StartService();
  rig_->RunFor(Millis(100));
  ASSERT_THAT(Append(1), IsOk());
  Bytes into(2 * kShardSize);
  SegmentLog::Range range{.stripe = ManifestOf(1).stripe, .index = {}, .offset = 0,
                          .into = into.span(), .checksum = {}, .checked_size = 0};
  EXPECT_THAT(Await(target().Read(range)), HasCode(Code::kOverloaded));
  range.into = into.span().first(kShardSize);
  EXPECT_THAT(Await(target().Read(range)), IsOk());
  EXPECT_EQ(service_->stats().requests_overloaded, 1u);
}

TEST_P(TargetOfPeer, AShardThatIsDamagedOnItsWayIsNotStored) {
  const Manifest manifest = ManifestOf(1);
  const Bytes shard = ShardOf(1);
  const ShardPayload sent{shard.span(), Checksum(shard.span()) + 1};  // As if it had been another.
  EXPECT_THAT(Await(target().Append(manifest, ShardIndex{0}, sent)), HasCode(Code::kUnavailable));
  EXPECT_THAT(Read(1, 0, kSectorSize), HasCode(Code::kNotFound));
  EXPECT_EQ(service_->stats().payloads_damaged, 1u);
}

TEST_P(TargetOfPeer, WhatIsSaidIsOfTheVersionThatAllSpeak) {
  const auto restart = [this](uint16_t version_max) {
    limits_.version_max = version_max;
    rig_->Kill(kServer);
    StartService();
    EXPECT_THAT(Read(9, 0, kSectorSize), HasCode(Code::kNotFound));  // Over a new connection.
  };
  restart(1);
  EXPECT_THAT(Append(1), HasCode(Code::kConflict));
  client_map_.spoken = 1;
  EXPECT_THAT(Append(1), IsOk());
  EXPECT_THAT(Read(1, 0, kSectorSize), IsOk());
  restart(peer::kVersion);
  EXPECT_THAT(Append(2), IsOk());
  client_map_.spoken = peer::kVersion + 1;  // Of nodes that are newer than this one.
  EXPECT_THAT(Append(3), IsOk());
}

// The caller learns of the loss only by its next request, and asks again.
TEST_P(TargetOfPeer, ABrokenConnectionCostsAReadNothing) {
  ASSERT_THAT(Append(1), IsOk());
  ASSERT_THAT(Read(1, 0, kSectorSize), IsOk());
  rig_->Kill(kServer);
  StartService();
  EXPECT_THAT(Read(1, 0, kSectorSize), IsOk());
}

TEST_P(TargetOfPeer, WorkThatNobodyWaitsForIsDroppedAndNonsenseIsRefused) {
  const auto ask = [this](peer::RequestHead head, ByteSpan message) {
    Network::Outgoing request(peer::EncodeRequest(head, message));
    const auto answer = Await(rig_->node(kClient).Call(kServer, std::move(request), {},
                                                       rig_->clock().Now() + Seconds(20)));
    EXPECT_THAT(answer, IsOk());
    const auto parsed = peer::ParseAnswerHead(answer.value().body.span());
    EXPECT_THAT(parsed, IsOk());
    return peer::ParseAnswer<peer::Nothing>(parsed.value().second).status();
  };
  peer::RequestHead head{.verb = peer::Verb::kSync, .budget_nanos = 1'000'000'000,
                         .target = local_->id()};
  EXPECT_THAT(ask(head, {}), IsOk());
  EXPECT_THAT(ask(head, AsBytes("x")), HasCode(Code::kInvalid));
  head.budget_nanos = -5;
  EXPECT_THAT(ask(head, {}), HasCode(Code::kDeadline));
  head.budget_nanos = 1'000'000'000;
  head.version = peer::kVersion + 1;
  EXPECT_THAT(ask(head, {}), HasCode(Code::kConflict));
  head.version = peer::kVersion;
  head.verb = static_cast<peer::Verb>(200);
  EXPECT_THAT(ask(head, {}), HasCode(Code::kInvalid));
  EXPECT_EQ(service_->stats().requests_late, 1u);
  EXPECT_EQ(service_->stats().requests_malformed, 3u);
}

}  // namespace
}  // namespace cairn::kv
