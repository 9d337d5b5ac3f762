// What a store must answer: every acknowledged block that is neither expired, evicted nor lost in a
// power cut, exact; anything else exact or not at all.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kvstore/client/block_store.h"

namespace cairn::sim {

// Bytes are a function of the block's id, so a mix-up shows.
class StoreChecker {
 public:
  static constexpr int64_t kCheckpointMillis = 7'000;  // The node's interval, and slack.

  struct Block {
    uint32_t size = 0;
    bool acknowledged = false;
    bool durable = false;
    int64_t acknowledged_at = 0;  // Unix milliseconds.
    int64_t first_attempt = 0;    // The earliest put that may have stored what is there now.
    int64_t expires_min = 0;      // It must be there before this,
    int64_t expires_max = 0;      // and must not be there from this on; 0: no bound.
    uint32_t puts_in_flight = 0;
  };

  void BeginPut(kv::BlockId id, uint32_t size, int64_t now);
  // `ttl_millis` is 0 where hits refresh: then no bound is kept above.
  void EndPut(kv::BlockId id, const kv::Status& outcome, bool durable, int64_t now,
              int64_t ttl_millis);

  Block& at(kv::BlockId id) { return blocks_[id]; }
  const std::map<kv::BlockId, Block>& blocks() const { return blocks_; }

  static kv::Bytes BytesOf(kv::BlockId id, uint32_t size);

  // Whether a read that began and ended at these times had to succeed.
  bool MustBeThere(kv::BlockId id, int64_t ended_at) const;
  // Empty when `result` (with the bytes read) is allowed, or what is wrong with it.
  std::string Judge(kv::BlockId id, const kv::BlockReadResult& result, kv::ByteSpan bytes,
                    int64_t began_at, int64_t ended_at) const;

  // After a power cut nothing that only memory knew has to be there.
  void ForgiveRecent(int64_t now);
  // Nothing at all has to be there any more: beyond the fault budget, or after evictions.
  bool misses_allowed = false;

 private:
  std::map<kv::BlockId, Block> blocks_;
};

}  // namespace cairn::sim
