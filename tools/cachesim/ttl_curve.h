// The hit rate of a cache bounded by time to live only, for many TTLs in one pass.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/cachesim/access.h"
#include "tools/cachesim/block_table.h"

namespace cairn::tools {

// Refreshed: a block lives for the TTL after its last use. Fixed: after it was written; a use does
// not prolong it, and a block still resident is not rewritten.
class TtlCurve {
 public:
  // Ascending, in milliseconds. Time may not run backwards: earlier times count as the latest one.
  TtlCurve(uint64_t block_tokens, std::vector<int64_t> ttls_ms);

  // One or the other, always.
  void Add(const Access& access);
  void Add(const NumberedAccess& access);

  const std::vector<int64_t>& ttls_ms() const { return ttls_ms_; }
  double HitRateRefreshed(size_t ttl_index) const;
  double HitRateFixed(size_t ttl_index) const;
  // By Little's law, for each request per second: the mean number of tokens resident in a steady
  // state with refreshed TTLs. The last use of a block counts with its whole TTL.
  double ResidentTokensPerRate(size_t ttl_index) const;

 private:
  void AddRefreshed(const NumberedAccess& access, int64_t now_ms);
  void AddFixed(const NumberedAccess& access, int64_t now_ms);

  const uint64_t block_tokens_;
  const std::vector<int64_t> ttls_ms_;
  std::vector<uint32_t> ages_max_;  // The same, as far as 32 bits go.
  BlockTable table_;                // Of blocks that come by their ids.
  std::vector<uint32_t> numbered_;
  std::vector<uint32_t> hit_blocks_;  // By TTL, of the request in hand.
  int64_t start_ms_ = 0;
  int64_t latest_ms_ = 0;
  std::vector<int64_t> last_use_ms_;  // By block; kNever before the first.
  // By block, then TTL (one cache line holds them all): since start_ms_ plus 1, 0 = absent. Spans
  // over 49 days count as 49 days.
  std::vector<uint32_t> written_ms_;
  std::vector<uint64_t> refreshed_tokens_;  // By the smallest TTL that hits.
  std::vector<uint64_t> fixed_tokens_;      // By TTL.
  std::vector<uint64_t> gap_tokens_;        // Tokens whose gap fits this TTL and none smaller.
  std::vector<double> gap_token_seconds_;   // The same, times the gap.
  uint64_t requests_ = 0;
  uint64_t input_tokens_ = 0;
  uint64_t touched_tokens_ = 0;
};

}  // namespace cairn::tools
