// Finds the longest of a set of tokens that begins at a place in a text.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "engine/api/token.h"

namespace cairn::engine {

class TokenTrie {
 public:
  struct Match {
    TokenId id;
    size_t size;
  };

  // Empty texts are ignored; of two tokens with one text the first stays.
  void Insert(std::string_view text, TokenId id);
  std::optional<Match> LongestAt(std::string_view text, size_t at) const;
  bool empty() const { return token_of_.empty(); }

 private:
  static uint64_t EdgeKey(uint32_t node, char byte) {
    return uint64_t{node} << 8 | static_cast<uint8_t>(byte);
  }

  std::unordered_map<uint64_t, uint32_t> edges_;  // (node, byte) to node; node 0 is the root.
  std::unordered_map<uint32_t, TokenId> token_of_;
  uint32_t node_count_ = 1;
};

}  // namespace cairn::engine
