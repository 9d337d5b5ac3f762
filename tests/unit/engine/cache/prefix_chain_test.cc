// Prefix keys: golden vectors, and what two sequences share.
#include "engine/cache/prefix_chain.h"

#include <gtest/gtest.h>

#include <numeric>

namespace cairn::engine {
namespace {

std::vector<TokenId> Count(TokenId first, size_t count) {
  std::vector<TokenId> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

// python3 - <<'X'
// import hashlib, struct
// key = b"cairn.prefix.1"
// for first in (0, 4):
//     key = hashlib.sha256(key + struct.pack("<4I", *range(first, first + 4))).digest()
//     print(key[:16].hex())
// X
TEST(PrefixChain, MatchesTheFormatsTestVectors) {
  PrefixChain chain(4);
  chain.Extend(Count(0, 9));
  ASSERT_EQ(chain.ids().size(), 2u);
  EXPECT_EQ(chain.ids()[0].ToHex(), "4a8186a290ac86c0d7f20f1aae788b8d");
  EXPECT_EQ(chain.ids()[1].ToHex(), "8b7d7a513d4f3016f10a9d488af6ecce");
}

TEST(PrefixChain, DoesNotDependOnHowTheTokensCame) {
  const std::vector<TokenId> tokens = Count(7, 100);
  PrefixChain whole(8);
  whole.Extend(tokens);
  PrefixChain pieces(8);
  for (size_t length = 0; length <= tokens.size(); ++length) {
    pieces.Extend(std::span(tokens).first(length));
    ASSERT_EQ(pieces.ids().size(), length / 8);
  }
  EXPECT_EQ(pieces.ids(), whole.ids());
}

TEST(PrefixChain, OneChangedTokenChangesItsBlockAndAllLaterOnes) {
  const std::vector<TokenId> tokens = Count(0, 64);
  PrefixChain original(8);
  original.Extend(tokens);
  for (size_t changed = 0; changed < tokens.size(); ++changed) {
    std::vector<TokenId> other = tokens;
    other[changed] += 1u << 20;
    PrefixChain chain(8);
    chain.Extend(other);
    for (size_t block = 0; block < 8; ++block) {
      EXPECT_EQ(chain.ids()[block] == original.ids()[block], block < changed / 8) << changed;
    }
  }
}

}  // namespace
}  // namespace cairn::engine
