// Compares answers with the record of what was acknowledged.
#include "tests/sim/store_checker.h"

#include <algorithm>

#include "kvstore/base/random.h"

namespace cairn::sim {

kv::Bytes StoreChecker::BytesOf(kv::BlockId id, uint32_t size) {
  kv::Bytes bytes(size);
  kv::Random random(id.high ^ id.low);
  random.Fill(bytes.span());
  return bytes;
}

void StoreChecker::BeginPut(kv::BlockId id, uint32_t size, int64_t now) {
  Block& block = blocks_[id];
  block.size = size;
  const bool dead = block.expires_max != 0 && now >= block.expires_max;
  if (block.first_attempt == 0 || (dead && block.puts_in_flight == 0)) {
    block.first_attempt = now;
    block.acknowledged = false;
  }
  ++block.puts_in_flight;
}

void StoreChecker::EndPut(kv::BlockId id, const kv::Status& outcome, bool durable, int64_t now,
                          int64_t ttl_millis) {
  Block& block = blocks_[id];
  --block.puts_in_flight;
  if (ttl_millis != 0) block.expires_max = std::max(block.expires_max, now + ttl_millis);
  if (!outcome.ok()) return;
  block.expires_min = ttl_millis == 0 ? INT64_MAX : block.first_attempt + ttl_millis;
  block.durable = (block.acknowledged && block.durable) || durable;
  if (!block.acknowledged) block.acknowledged_at = now;
  block.acknowledged = true;
}

bool StoreChecker::MustBeThere(kv::BlockId id, int64_t ended_at) const {
  const auto found = blocks_.find(id);
  if (misses_allowed || found == blocks_.end()) return false;
  return found->second.acknowledged && ended_at < found->second.expires_min;
}

std::string StoreChecker::Judge(kv::BlockId id, const kv::BlockReadResult& result,
                                kv::ByteSpan bytes, int64_t began_at, int64_t ended_at) const {
  if (!result.status.ok()) {
    if (!MustBeThere(id, ended_at)) return {};
    return "an acknowledged block is missing: " + result.status.ToString();
  }
  const auto found = blocks_.find(id);
  if (found == blocks_.end()) return "a block that was never put";
  const Block& block = found->second;
  if (result.size != block.size) return "wrong size";
  const kv::Bytes wanted = BytesOf(id, block.size);
  if (!std::equal(wanted.span().begin(), wanted.span().end(), bytes.begin())) return "wrong bytes";
  if (block.puts_in_flight == 0 && block.expires_max != 0 && began_at >= block.expires_max)
    return "an expired block is served";
  return {};
}

void StoreChecker::ForgiveRecent(int64_t now) {
  for (auto& [id, block] : blocks_) {
    if (block.durable || block.acknowledged_at + kCheckpointMillis < now) continue;
    block.acknowledged = false;
  }
}

}  // namespace cairn::sim
