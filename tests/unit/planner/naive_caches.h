// Simulators as plain as their definitions, slow and easy to believe: what the fast ones must
// equal.
#pragma once

#include <cstdint>
#include <vector>

#include "kvstore/base/random.h"
#include "tools/cachesim/access.h"

namespace cairn::tools {

struct NaiveRequest {
  int64_t time_ms = 0;
  uint64_t input_tokens = 0;
  std::vector<uint64_t> blocks;
  Access access() const { return {time_ms, input_tokens, blocks}; }
};

// Sessions that grow, fork and restart, with partial last blocks; ids are chained.
std::vector<NaiveRequest> RandomTrace(uint64_t seed, uint64_t block_tokens, int requests);
// Blocks picked at random, repeated within a request too: no chains at all.
std::vector<NaiveRequest> UnchainedTrace(uint64_t seed, uint64_t block_tokens, int requests);

double NaiveLru(const std::vector<NaiveRequest>& trace, uint64_t block_tokens, size_t capacity);
enum class NaiveTtlKind { kRefreshed, kFixed };
double NaiveTtl(const std::vector<NaiveRequest>& trace, uint64_t block_tokens, int64_t ttl_ms,
                NaiveTtlKind kind);
double NaiveS3Fifo(const std::vector<NaiveRequest>& trace, uint64_t block_tokens, size_t capacity);

}  // namespace cairn::tools
