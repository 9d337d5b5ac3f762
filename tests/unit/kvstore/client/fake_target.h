// A target in memory whose shards can be damaged, with a clock and workers to go with it.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "kvstore/base/checksum.h"
#include "kvstore/client/target_port.h"
#include "kvstore/io/clock.h"
#include "kvstore/io/workers.h"

namespace cairn::kv {

class FakeClock final : public Clock {
 public:
  Instant Now() const override { return {unix_.value * 1'000'000}; }
  UnixMillis UnixNow() const override { return unix_; }
  Task<void> SleepUntil(Instant, Event*) override { co_return; }
  void Advance(int64_t millis) { unix_.value += millis; }

 private:
  UnixMillis unix_{1'700'000'000'000};
};

class InlineWorkers final : public Workers {
 public:
  Task<void> Run(std::function<void()> call) override {
    call();
    co_return;
  }
};

// Counts the index reads of all targets that share it, which then take a few turns of the loop.
struct LookupGauge {
  explicit LookupGauge(Loop& shared_loop) : loop(shared_loop) {}
  struct Turn {
    Loop& loop;
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> waiter) { loop.Wake(waiter); }
    void await_resume() const {}
  };
  Turn TakeTurn() { return Turn{loop}; }

  Loop& loop;
  std::set<RunId> runs;  // Asked for.
  int in_flight = 0;
  int peak = 0;
};

// Answers at once unless `hold` is set (then appends wait for the event) or `hold_reads`.
class FakeTarget final : public TargetPort {
 public:
  explicit FakeTarget(uint64_t id) : id_{id} {}

  TargetId id() const override { return id_; }
  uint64_t free_bytes() const override { return capacity - used(); }
  uint32_t operations_in_flight() const override { return 0; }

  Task<Status> Append(const Manifest& manifest, ShardIndex index, ByteSpan payload) override {
    if (hold != nullptr) co_await *hold;
    KV_CHECK(payload.size() == manifest.shard_size);
    KV_CHECK(reinterpret_cast<uintptr_t>(payload.data()) % kSectorSize == 0);
    if (down) co_return Status(Code::kUnavailable, "down");
    if (payload.size() > free_bytes()) co_return Status(Code::kNoSpace);
    ++appends;
    Bytes bytes = Bytes::CopyOf(payload);
    const uint64_t checksum = Checksum(payload);
    shards.insert_or_assign(manifest.stripe, Shard{index, std::move(bytes), checksum});
    co_return Status();
  }

  Task<Status> Read(SegmentLog::Range range) override {
    ++reads;
    if (hold_reads != nullptr) co_await *hold_reads;
    if (down) co_return Status(Code::kUnavailable, "down");
    const auto found = shards.find(range.stripe);
    if (found == shards.end() || found->second.index != range.index) {
      co_return Status(Code::kNotFound);
    }
    const ByteSpan bytes = found->second.bytes.span().subspan(range.offset, range.into.size());
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
    const auto found = shards.find(stripe);
    if (found == shards.end() || found->second.index != index) co_return Status(Code::kNotFound);
    const ByteSpan bytes = found->second.bytes.span();
    std::copy(bytes.begin(), bytes.end(), into.begin());
    if (Checksum(bytes) != found->second.checksum) co_return Status(Code::kCorrupt);
    co_return Status();
  }

  bool MayHold(StripeId stripe, ShardIndex index) const override {
    const auto found = shards.find(stripe);
    return found != shards.end() && found->second.index == index;
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
    filed.insert_or_assign(stripe.manifest.stripe, std::move(stripe));
    co_return Status();
  }
  Task<Result<std::vector<IndexedStripe>>> LookUp(NamespaceId space, RunId run) override {
    ++index_reads;
    if (lookup_gauge != nullptr) {
      lookup_gauge->runs.insert(run);
      lookup_gauge->peak = std::max(lookup_gauge->peak, ++lookup_gauge->in_flight);
      for (int turn = 0; turn < 5; ++turn) co_await lookup_gauge->TakeTurn();
      --lookup_gauge->in_flight;
    }
    if (down) co_return Status(Code::kUnavailable, "down");
    std::vector<IndexedStripe> stripes;
    for (const auto& [id, stripe] : filed) {
      if (stripe.manifest.space == space && stripe.manifest.run == run) stripes.push_back(stripe);
    }
    co_return stripes;
  }
  Task<Status> Withdraw(StripeName name) override {
    filed.erase(name.stripe);
    co_return Status();
  }
  bool MayHaveFiled(StripeId stripe) const override { return filed.contains(stripe); }
  void Touch(StripeId stripe, UnixMillis expires_at) override {
    const auto found = filed.find(stripe);
    if (found != filed.end())
      found->second.expires_at = std::max(found->second.expires_at, expires_at);
  }

  Task<Status> SaveSpace(SpaceRecord record) override {
    if (down) co_return Status(Code::kUnavailable, "down");
    spaces.insert_or_assign(record.name, record);
    co_return Status();
  }
  Task<Result<std::vector<SpaceRecord>>> ListSpaces() override {
    if (down) co_return Status(Code::kUnavailable, "down");
    std::vector<SpaceRecord> list;
    for (const auto& [name, record] : spaces) list.push_back(record);
    co_return list;
  }

  uint64_t used() const {
    uint64_t bytes = 0;
    for (const auto& [id, shard] : shards) bytes += shard.bytes.size();
    return bytes;
  }
  // Flips a bit in every shard, without a trace in its checksum.
  void FlipBits(uint64_t byte) {
    for (auto& [id, shard] : shards) shard.bytes.data()[byte % shard.bytes.size()] ^= 0x10;
  }
  void Wipe() {
    shards.clear();
    filed.clear();
  }

  struct Shard {
    ShardIndex index;
    Bytes bytes;
    uint64_t checksum = 0;
  };
  std::map<StripeId, Shard> shards;
  std::map<StripeId, IndexedStripe> filed;
  std::map<std::string, SpaceRecord> spaces;
  uint64_t capacity = 1 * kGiB;
  bool down = false;
  Event* hold = nullptr;
  Event* hold_reads = nullptr;  // Then reads wait for it.
  LookupGauge* lookup_gauge = nullptr;
  int appends = 0, reads = 0, verified_reads = 0, syncs = 0, index_reads = 0;
  int durable_publications = 0;
  uint64_t bytes_read = 0;

 private:
  const TargetId id_;
};

}  // namespace cairn::kv
