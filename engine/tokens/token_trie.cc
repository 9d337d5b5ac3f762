// Finds the longest of a set of tokens that begins at a place in a text.
#include "engine/tokens/token_trie.h"

namespace cairn::engine {

void TokenTrie::Insert(std::string_view text, TokenId id) {
  if (text.empty()) return;
  uint32_t node = 0;
  for (const char byte : text) {
    const auto [edge, added] = edges_.emplace(EdgeKey(node, byte), node_count_);
    if (added) ++node_count_;
    node = edge->second;
  }
  token_of_.emplace(node, id);
}

std::optional<TokenTrie::Match> TokenTrie::LongestAt(std::string_view text, size_t at) const {
  std::optional<Match> longest;
  uint32_t node = 0;
  for (size_t i = at; i < text.size(); ++i) {
    const auto edge = edges_.find(EdgeKey(node, text[i]));
    if (edge == edges_.end()) break;
    node = edge->second;
    const auto token = token_of_.find(node);
    if (token != token_of_.end()) longest = Match{token->second, i + 1 - at};
  }
  return longest;
}

}  // namespace cairn::engine
