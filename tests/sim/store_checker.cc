// Compares answers with the record of what was done.
#include "tests/sim/store_checker.h"

#include <algorithm>
#include <cstring>

#include "kvstore/base/check.h"
#include "kvstore/base/random.h"

namespace cairn::sim {
namespace {

// The store notes a hit at most once a second.
constexpr int64_t kTouchMillis = 1'000;
constexpr int64_t kBetweenHits = 250;
constexpr size_t kHitsMax = 64;

}  // namespace

void StoreChecker::Declare(BlockKey key, uint32_t size, kv::RunId run,
                           const kv::NamespaceOptions& space) {
  runs_[{key.space, run}].blocks.insert(key);
  Block& block = blocks_[key];
  if (block.bytes.size() > 0) {
    KV_CHECK(block.bytes.size() == size && block.run == run);
    return;
  }
  block.run = run;
  block.refreshed = space.retention == kv::RetentionKind::kRefreshed;
  block.in_memory = space.medium == kv::Medium::kMemory;
  const uint64_t other = key.space * 0x9e3779b97f4a7c15u;
  block.bytes = BytesOf({{key.id.high ^ other, key.id.low}}, size);
}

kv::Bytes StoreChecker::BytesOf(kv::BlockId id, uint32_t size) {
  kv::Bytes bytes(size);
  kv::Random random(id.high ^ id.low);
  random.Fill(bytes.span());
  return bytes;
}

void StoreChecker::BeginPut(BlockKey key, Moment now, int64_t ttl_millis) {
  Block& block = blocks_.at(key);
  const bool gone = block.puts_in_flight == 0 && IsGone(key, now.unix);
  if (block.born == 0 || block.deleted_at != 0 || gone) {
    block.born = now.unix;
    block.acknowledged = false;
    block.durable = false;
    block.ttl_min = ttl_millis;
    block.ttl_max = ttl_millis;
    block.expires_max = 0;
    block.deleted_at = 0;
    block.dropped = false;
    block.fresh = true;
    block.half_gone = false;
    block.kept_until = 0;
    block.kept_max = 0;
    block.hits.clear();
  }
  block.ttl_min = std::min(block.ttl_min, ttl_millis);
  block.ttl_max = std::max(block.ttl_max, ttl_millis);
  block.put_order = now.order;
  block.began_order = now.order;
  ++block.puts_in_flight;
}

void StoreChecker::EndPut(BlockKey key, const kv::Status& outcome, bool durable, Moment began,
                          Moment now, int64_t ttl_millis) {
  Block& block = blocks_.at(key);
  --block.puts_in_flight;
  block.put_order = now.order;
  Run& run = RunOf(key);  // What was there already is used by a put, too.
  run.looked_at = std::max(run.looked_at, now.unix);
  block.expires_max = std::max(block.expires_max, std::max(began.unix, now.unix) + ttl_millis);
  if (outcome.code() == kv::Code::kNotFound) {  // Nothing was written, or all of it is taken back.
    if (block.fresh && block.puts_in_flight == 0) block.deleted_at = now.unix;
    return;
  }
  block.fresh = false;
  if (!outcome.ok()) {
    if (!block.acknowledged) Taint(block);
    return;
  }
  if (block.delete_order > began.order) return;  // A delete meanwhile may have come later.
  // Unless it was owed all the time this put may be the one that has stored it.
  const bool was_there = Owed(key, now.unix);
  block.durable = (was_there && block.durable) || durable;
  if (!was_there) block.acknowledged_at = now.unix;
  block.acknowledged = true;
}

StoreChecker::Access StoreChecker::BeginLook(std::vector<BlockKey> keys, Moment now) {
  Access access{.began = now, .keys = std::move(keys), .absent = {}, .owed = {}, .held = {}};
  for (const BlockKey& key : access.keys) {
    access.absent.push_back(IsGone(key, now.unix));
    access.owed.push_back(Owed(key, now.unix));
    access.held.push_back(IsHeld(blocks_.at(key), now.unix));
  }
  for (Run* run : RunsOf(access.keys)) ++run->looks_in_flight;
  return access;
}

void StoreChecker::EndLook(const Access& access, Moment now) {
  for (Run* run : RunsOf(access.keys)) {
    --run->looks_in_flight;
    run->looked_at = std::max(run->looked_at, now.unix);
  }
}

void StoreChecker::Hit(BlockKey key, Moment began) {
  Block& block = blocks_.at(key);
  if (!block.refreshed || stepped_order_ > began.order) return;
  if (!block.hits.empty() && block.hits.back() + kBetweenHits > began.unix) return;
  block.hits.push_back(began.unix);
  if (block.hits.size() > kHitsMax) block.hits.pop_front();
}

void StoreChecker::Leased(BlockKey key, int64_t until) {
  Block& block = blocks_.at(key);
  if (block.half_gone) return;
  block.leased_until = std::max(block.leased_until, until);
}

void StoreChecker::BeginKeep(BlockKey key, int64_t until) {
  Block& block = blocks_.at(key);
  block.kept_max = std::max(block.kept_max, until);
}

void StoreChecker::Kept(BlockKey key, int64_t until, Moment began, Moment now) {
  Block& block = blocks_.at(key);
  if (!block.acknowledged || block.delete_order > began.order || block.half_gone) return;
  if (stepped_order_ > began.order) return;
  block.kept_until = std::max(block.kept_until, until);
  block.kept_at = now.unix;
}

std::vector<BlockKey> StoreChecker::KeysOf(uint32_t space) const {
  std::vector<BlockKey> keys;
  for (const auto& [key, block] : blocks_) {
    if (key.space == space) keys.push_back(key);
  }
  return keys;
}

StoreChecker::Access StoreChecker::BeginDelete(std::vector<BlockKey> keys, Moment now) {
  for (Run* run : RunsOf(keys)) ++run->deletes_in_flight;
  DisownRuns(keys, now.order);
  return {.began = now, .keys = std::move(keys), .absent = {}, .owed = {}, .held = {}};
}

void StoreChecker::EndDelete(const Access& access, bool done, Moment now) {
  for (const BlockKey& key : access.keys) {
    Block& block = blocks_.at(key);
    const bool alone = block.puts_in_flight == 0 && block.put_order < access.began.order;
    if (done && alone && block.born != 0) block.deleted_at = now.unix;
  }
  for (Run* run : RunsOf(access.keys)) {
    --run->deletes_in_flight;
    run->deleted_at = now.unix;
  }
  DisownRuns(access.keys, now.order);
}

void StoreChecker::EndDrop(const Access& access, bool done, Moment now) {
  EndDelete(access, done, now);
  for (const BlockKey& key : access.keys) {
    Block& block = blocks_.at(key);
    if (!done || block.born == 0 || block.began_order > access.began.order) continue;
    block.deleted_at = now.unix;
    block.dropped = true;
  }
}

void StoreChecker::DisownRuns(const std::vector<BlockKey>& keys, uint64_t order) {
  for (const Run* run : RunsOf(keys)) {
    for (const BlockKey& key : run->blocks) {
      Block& block = blocks_.at(key);
      block.acknowledged = false;
      block.leased_until = 0;
      block.kept_until = 0;
      block.delete_order = order;
    }
  }
}

bool StoreChecker::Owed(BlockKey key, int64_t at) const {
  const Block& block = blocks_.at(key);
  int64_t since = block.born;
  if (!block.hits.empty()) since = std::max(since, block.hits.back() - kTouchMillis);
  const int64_t until = std::max(since + block.ttl_min, block.kept_until);
  return block.acknowledged && std::max(at, latest_) < until;
}

bool StoreChecker::OwedSince(const Access& access, size_t i, int64_t now) const {
  const BlockKey key = access.keys[i];
  return access.owed[i] && blocks_.at(key).delete_order < access.began.order && Owed(key, now);
}

bool StoreChecker::HeldSince(const Access& access, size_t i, int64_t now) const {
  return access.held[i] && IsHeld(blocks_.at(access.keys[i]), now) && OwedSince(access, i, now);
}

bool StoreChecker::OwedWhole(BlockKey key, int64_t at) const {
  return Owed(key, at) && !blocks_.at(key).tainted;
}

void StoreChecker::Missed(BlockKey key) {
  blocks_.at(key).acknowledged = false;
  ++missed_;
}

std::string StoreChecker::JudgeFound(const Access& access, size_t i, uint32_t size) const {
  const Block& block = blocks_.at(access.keys[i]);
  const bool expired = block.born != 0 && block.deleted_at == 0;
  const bool judged = !expired || stepped_order_ < access.began.order;
  if (access.absent[i] && block.put_order < access.began.order && judged) {
    if (block.born == 0) return "a block that was never put";
    return block.deleted_at != 0 ? "a deleted block" : "an expired block";
  }
  if (size != block.bytes.size()) return "wrong size";
  return {};
}

std::string StoreChecker::JudgeBytes(const Access& access, size_t i, uint32_t size,
                                     kv::ByteSpan bytes) const {
  std::string problem = JudgeFound(access, i, size);
  if (!problem.empty()) return problem;
  const kv::ByteSpan wanted = BytesOf(access.keys[i]);
  if (std::memcmp(wanted.data(), bytes.data(), wanted.size()) != 0) return "wrong bytes";
  return {};
}

void StoreChecker::Stopped(int64_t now) {
  for (auto& [key, block] : blocks_) {
    block.leased_until = 0;
    if (!block.in_memory) continue;
    block.acknowledged = false;
    if (block.born != 0) block.deleted_at = now;
  }
}

void StoreChecker::Stepped(int64_t by, int64_t before) {
  stepped_order_ = ++order_;
  if (by < 0) latest_ = std::max(latest_, before);
  const auto shift = [by](int64_t& at) { at += at != 0 && by > 0 ? by : 0; };
  for (auto& [key, block] : blocks_) {
    if (block.leased_until != 0) block.leased_until += by;  // Of another clock.
    // Forward: what was done just now is not older for that. Back: it was not done in the future.
    const int64_t known = by > 0 ? before - kCheckpointMillis : before + by;
    if (by < 0 && block.fresh) block.deleted_at = 0;  // What had expired may be back.
    if (by < 0) block.fresh = false;
    while (!block.hits.empty() && block.hits.back() >= known) block.hits.pop_back();
    if (block.born != 0) block.born = std::min(block.born, before + by);
    if (block.kept_until <= latest_) block.kept_until = 0;
    for (int64_t* at : {&block.acknowledged_at, &block.kept_at, &block.deleted_at}) shift(*at);
  }
  for (auto& [name, run] : runs_) {
    shift(run.looked_at);
    shift(run.deleted_at);
  }
}

void StoreChecker::Crashed(int64_t now, bool power_cut) {
  Stopped(now);
  const auto is_recent = [&](int64_t at) { return at + kCheckpointMillis >= now; };
  for (auto& [key, block] : blocks_) {
    while (!block.hits.empty() && is_recent(block.hits.back())) block.hits.pop_back();
    if (block.puts_in_flight > 0 && !block.acknowledged) Taint(block);
    if (!power_cut) continue;
    // An eviction that was not durable comes back in part: what it took is known to no table.
    if (now >= block.kept_until) block.half_gone = true;
    if (is_recent(block.kept_at)) block.kept_until = 0;
    if (block.acknowledged && !block.durable && is_recent(block.acknowledged_at)) {
      block.acknowledged = false;
      Taint(block);
    }
    const bool may_return = !block.in_memory && !block.dropped && is_recent(block.deleted_at);
    if (block.deleted_at != 0 && may_return) block.deleted_at = 0;
  }
  for (auto& [name, run] : runs_) {
    const bool in_part = run.deletes_in_flight > 0 || (power_cut && is_recent(run.deleted_at));
    if (!in_part || (run.deleted_at == 0 && run.deletes_in_flight == 0)) continue;
    for (const BlockKey& key : run.blocks) Taint(blocks_.at(key));
  }
}

std::set<StoreChecker::Run*> StoreChecker::RunsOf(const std::vector<BlockKey>& keys) {
  std::set<Run*> runs;  // Only visited, each once: the order of addresses changes nothing.
  for (const BlockKey& key : keys) runs.insert(&RunOf(key));
  return runs;
}

std::vector<BlockKey> StoreChecker::RunMatesOf(const std::vector<BlockKey>& keys) {
  std::set<BlockKey> mates;
  for (const Run* run : RunsOf(keys)) mates.insert(run->blocks.begin(), run->blocks.end());
  return {mates.begin(), mates.end()};
}

// Surely not there: never put, deleted, or past any expiry that it can have.
bool StoreChecker::IsGone(BlockKey key, int64_t now) const {
  const Block& block = blocks_.at(key);
  if (block.born == 0 || block.deleted_at != 0) return true;
  if (block.puts_in_flight > 0) return false;
  const int64_t expires_max = std::max(block.expires_max, block.kept_max);
  if (!block.refreshed) return now >= expires_max;
  const Run& run = runs_.at({key.space, block.run});
  const int64_t touched = run.looked_at + block.ttl_max;
  return run.looks_in_flight == 0 && now >= std::max(expires_max, touched);
}

void StoreChecker::Taint(Block& block) {
  block.tainted = true;
  tainted_ = true;
}

}  // namespace cairn::sim
