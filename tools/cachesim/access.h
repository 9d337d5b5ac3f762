// One request as every simulator sees it: when, how long, and which chain of blocks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace cairn::tools {

struct Access {
  int64_t time_ms = 0;
  uint64_t input_tokens = 0;
  // Root first. A block's id stands for all tokens up to its end, so equal ids mean equal prefixes.
  std::span<const uint64_t> blocks;
};

// The same, its blocks numbered by a BlockTable that several simulators share.
struct NumberedAccess {
  int64_t time_ms = 0;
  uint64_t input_tokens = 0;
  std::span<const uint32_t> blocks;
  uint32_t numbers = 0;  // How many are given so far: every number is below it.
};

// Prompt tokens that the first `blocks` blocks hold; the last one may be partial.
inline uint64_t TokensInBlocks(uint64_t blocks, uint64_t block_tokens, uint64_t input_tokens) {
  return std::min(input_tokens, blocks * block_tokens);
}

// Prompt tokens of the block at `index` alone.
inline uint64_t TokensAt(uint64_t index, uint64_t block_tokens, uint64_t input_tokens) {
  return TokensInBlocks(index + 1, block_tokens, input_tokens) -
         TokensInBlocks(index, block_tokens, input_tokens);
}

}  // namespace cairn::tools
