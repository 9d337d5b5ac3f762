// A target in memory whose shards can be damaged.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "kvstore/base/checksum.h"
#include "kvstore/client/target_port.h"
#include "tests/unit/kvstore/client/fake_seams.h"

namespace cairn::kv {

// Answers at once unless `hold` is set (then appends wait for it), `hold_reads` or
// `hold_questions`.
class FakeTarget final : public TargetPort, public FakeSpaces {
 public:
  explicit FakeTarget(uint64_t id) : id_{id} {}

  TargetId id() const override { return id_; }
  uint64_t free_bytes() const override { return capacity - used(); }
  uint32_t operations_in_flight() const override { return 0; }

  Task<Status> Append(const Manifest& manifest, ShardIndex index, ShardPayload payload) override {
    co_await WhileHeld(hold);
    KV_CHECK(payload.bytes.size() == manifest.shard_size);
    KV_CHECK(reinterpret_cast<uintptr_t>(payload.bytes.data()) % kSectorSize == 0);
    if (down) co_return Status(Code::kUnavailable, "down");
    if (payload.bytes.size() > free_bytes()) co_return Status(Code::kNoSpace);
    ++appends;
    Bytes bytes = Bytes::CopyOf(payload.bytes);
    shards.insert_or_assign(manifest.stripe, Shard{index, std::move(bytes), payload.checksum});
    co_return Status();
  }
  Task<Status> Read(SegmentLog::Range range) override {
    ++reads;
    co_await WhileHeld(hold_reads);
    if (late && late(range.give_up_at)) co_return Status(Code::kDeadline);
    if (down) co_return Status(Code::kUnavailable, "down");
    if (!MayHold(range.stripe, range.index)) co_return Status(Code::kNotFound);
    const Shard& shard = shards.at(range.stripe);
    const ByteSpan bytes = shard.bytes.span().subspan(range.offset, range.into.size());
    std::copy(bytes.begin(), bytes.end(), range.into.begin());
    bytes_read += range.into.size();
    if (range.checksum && Checksum(range.into.first(range.checked_size)) != *range.checksum) {
      co_return Status(Code::kCorrupt);
    }
    co_return Status();
  }
  Task<Status> ReadVerified(StripeId stripe, ShardIndex index, MutableByteSpan into) override {
    ++verified_reads;
    if (down) co_return Status(Code::kUnavailable, "down");
    if (!MayHold(stripe, index)) co_return Status(Code::kNotFound);
    const Shard& shard = shards.at(stripe);
    const ByteSpan bytes = shard.bytes.span();
    std::copy(bytes.begin(), bytes.end(), into.begin());
    if (Checksum(bytes) != shard.checksum) co_return Status(Code::kCorrupt);
    co_return Status();
  }

  bool MayHold(StripeId stripe, ShardIndex index) const override {
    const auto found = shards.find(stripe);
    return found != shards.end() && found->second.index == index;
  }
  Task<Status> Holds(StripeId stripe, ShardIndex index) override {
    co_await WhileHeld(hold_questions);
    if (down) co_return Status(Code::kUnavailable, "down");
    co_return Status(MayHold(stripe, index) ? Code::kOk : Code::kNotFound);
  }
  Task<Status> Drop(StripeId stripe) override {
    shards.erase(stripe);
    co_return Status();
  }
  Task<Status> Sync() override {
    ++syncs;
    co_return down ? Status(Code::kUnavailable, "down") : Status();
  }

  Task<Status> Publish(IndexedStripe stripe, Durability durability) override {
    if (down) co_return Status(Code::kUnavailable, "down");
    if (durability == Durability::kPowerCut) ++durable_publications;
    used_at[stripe.manifest.stripe] = now_seconds == nullptr ? 0 : now_seconds();
    filed.insert_or_assign(stripe.manifest.stripe, std::move(stripe));
    co_return Status();
  }
  Task<Result<std::vector<IndexedStripe>>> LookUp(NamespaceId space, RunId run) override {
    ++index_reads;
    if (lookup_gauge != nullptr) co_await lookup_gauge->Pass(run);
    if (down) co_return Status(Code::kUnavailable, "down");
    std::vector<IndexedStripe> stripes;
    for (const auto& [id, stripe] : filed) {
      if (stripe.manifest.space == space && stripe.manifest.run == run) stripes.push_back(stripe);
    }
    co_return stripes;
  }
  Task<Result<IndexedStripe>> ReadFiled(StripeId stripe) override {
    if (down) co_return Status(Code::kUnavailable, "down");
    if (says_of_filed != Code::kOk) co_return Status(says_of_filed);
    if (!filed.contains(stripe)) co_return Status(Code::kNotFound);
    co_return filed.at(stripe);
  }
  Task<Status> Withdraw(StripeName name) override {
    if (refuses_withdrawals) co_return Status(Code::kUnavailable, "no writes");
    filed.erase(name.stripe);
    co_return Status();
  }
  Task<Status> SaveRemoval(StripeId /*stripe*/) override { co_return Status(); }
  bool MayHaveFiled(StripeId stripe) const override { return filed.contains(stripe); }
  void Touch(StripeId stripe, const StripeUse& use) override {
    const auto found = filed.find(stripe);
    if (found == filed.end()) return;
    found->second.expires_at = std::max(found->second.expires_at, use.expires_at);
    found->second.keep_until = std::max(found->second.keep_until, use.keep_until);
    used_at[stripe] = std::max(used_at[stripe], use.last_access);
  }
  Task<Status> SaveUse(StripeId) override {
    co_return down ? Status(Code::kUnavailable, "down") : Status();
  }
  std::optional<StripeState> StateOf(StripeId stripe) const override {
    const auto found = filed.find(stripe);
    if (found == filed.end()) return std::nullopt;
    const Manifest& manifest = found->second.manifest;
    StripeState state;
    state.space = manifest.space;
    state.expires_at = found->second.expires_at;
    const auto use = used_at.find(stripe);
    state.last_access = use == used_at.end() ? 0 : use->second;
    state.keep_until = found->second.keep_until;
    state.position = found->second.position;
    state.ttl_seconds = manifest.retention.ttl_seconds;
    for (const ManifestBlock& block : manifest.blocks) {
      state.payload_bytes += static_cast<uint32_t>(AlignUp(block.size, kSectorSize));
    }
    state.kind = manifest.retention.kind;
    return state;
  }
  Task<Result<StripeName>> NameOf(StripeId stripe) override {
    if (!filed.contains(stripe)) co_return Status(Code::kNotFound);
    co_return StripeName{filed.at(stripe).manifest.space, filed.at(stripe).manifest.run, stripe};
  }
  Task<Result<std::vector<Filed>>> ListFiled(std::optional<StripeId> after, size_t limit) override {
    std::vector<Filed> list;
    for (auto at = after ? filed.upper_bound(*after) : filed.begin();
         at != filed.end() && list.size() < limit; ++at) {
      list.push_back({at->first, *StateOf(at->first)});
    }
    co_return list;
  }

  Task<Status> SaveSpace(SpaceRecord record) override {
    if (down) co_return Status(Code::kUnavailable, "down");
    Save(record);
    co_return Status();
  }
  Task<Result<std::vector<SpaceRecord>>> ListSpaces() override {
    if (down) co_return Status(Code::kUnavailable, "down");
    co_return List();
  }

  uint64_t used() const {
    return std::accumulate(shards.begin(), shards.end(), uint64_t{0},
                           [](uint64_t sum, auto& one) { return sum + one.second.bytes.size(); });
  }
  // Flips a bit in every shard, without a trace in its checksum.
  void FlipBits(uint64_t byte) {
    for (auto& [id, shard] : shards) shard.bytes.data()[byte % shard.bytes.size()] ^= 0x10;
  }
  void Wipe() { shards.clear(), filed.clear(); }

  struct Shard {
    ShardIndex index;
    Bytes bytes;
    uint64_t checksum = 0;
  };
  std::map<StripeId, Shard> shards;
  std::map<StripeId, IndexedStripe> filed;
  std::map<StripeId, uint32_t> used_at;  // When last, in seconds.
  uint64_t capacity = 1 * kGiB;
  bool down = false;
  Code says_of_filed = Code::kOk;  // Else ReadFiled fails so.
  bool refuses_withdrawals = false;
  Event* hold = nullptr;
  std::function<uint32_t()> now_seconds = nullptr;  // For the time of last use.
  std::function<bool(Instant give_up_at)> late;  // Asked by each read: whether it is given up.
  Event* hold_reads = nullptr;  // Then reads wait for it.
  Event* hold_questions = nullptr;  // The same.
  LookupGauge* lookup_gauge = nullptr;
  int appends = 0, reads = 0, verified_reads = 0, syncs = 0, index_reads = 0,
      durable_publications = 0;
  uint64_t bytes_read = 0;

 private:
  const TargetId id_;
};

}  // namespace cairn::kv
