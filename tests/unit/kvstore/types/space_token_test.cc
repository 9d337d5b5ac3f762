// Proofs of a token: whoever knows it makes them, and each serves once, for one namespace.
#include "kvstore/types/space_token.h"

#include <gtest/gtest.h>

#include <string>

namespace cairn::kv {
namespace {

constexpr SpaceToken kModels{.name = "models", .token = "0123456789abcdef"};

TokenNonces Counting() {
  TokenNonces nonces;
  for (uint8_t i = 0; i < 32; ++i) {
    nonces.server[i] = i;
    nonces.client[i] = static_cast<uint8_t>(32 + i);
  }
  return nonces;
}

std::string Hex(const Sha256Digest& digest) {
  std::string text;
  for (const uint8_t byte : digest) {
    text.push_back("0123456789abcdef"[byte >> 4]);
    text.push_back("0123456789abcdef"[byte & 15]);
  }
  return text;
}

TEST(SpaceToken, IsAsTheFormatSays) {
  EXPECT_EQ(Hex(StoredKeyOf(kModels).digest),
            "93bc619538578997d68fb7869cffd56bf4c815f9d0b054c49f6e08eca678d944");
  EXPECT_EQ(Hex(ProveToken(kModels, Counting()).answer),
            "904fd4153a11840b85e146b2fc11b549e19fb060ef801b6227562937332b18fc");
}

TEST(SpaceToken, IsProvenByWhoKnowsIt) {
  const StoredKey key = StoredKeyOf(kModels);
  EXPECT_TRUE(IsProven(key, "models", ProveToken(kModels, Counting())));
  for (const char* wrong : {"", "0123456789abcde", "0123456789abcdeF", "0123456789abcdef "}) {
    const SpaceToken guess{.name = "models", .token = wrong};
    EXPECT_FALSE(IsProven(key, "models", ProveToken(guess, Counting()))) << wrong;
  }
}

TEST(SpaceToken, AProofIsGoodForItsNamespaceAndItsNoncesOnly) {
  const StoredKey key = StoredKeyOf(kModels);
  const TokenProof proof = ProveToken(kModels, Counting());
  // The same token elsewhere is another key, and even under this one the name is part of the proof.
  const SpaceToken elsewhere{.name = "others", .token = kModels.token};
  EXPECT_NE(StoredKeyOf(elsewhere), key);
  EXPECT_FALSE(IsProven(StoredKeyOf(elsewhere), "others", proof));
  EXPECT_FALSE(IsProven(key, "others", proof));
  TokenProof replayed = proof;
  replayed.nonces.server[31] ^= 1;
  EXPECT_FALSE(IsProven(key, "models", replayed));
  replayed = proof;
  replayed.nonces.client[0] ^= 1;
  EXPECT_FALSE(IsProven(key, "models", replayed));
}

TEST(SpaceToken, EveryBitOfAProofCounts) {
  const StoredKey key = StoredKeyOf(kModels);
  const TokenProof proof = ProveToken(kModels, Counting());
  for (size_t bit = 0; bit < 8 * proof.answer.size(); ++bit) {
    TokenProof bad = proof;
    bad.answer[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    EXPECT_FALSE(IsProven(key, "models", bad)) << bit;
  }
}

// What a thief of the records has makes no proof: neither the stored key, nor none at all.
TEST(SpaceToken, TheStoredKeyAloneProvesNothing) {
  const StoredKey key = StoredKeyOf(kModels);
  TokenProof forged{.nonces = Counting()};
  EXPECT_FALSE(IsProven(key, "models", forged));
  forged.answer = key.digest;
  EXPECT_FALSE(IsProven(key, "models", forged));
}

}  // namespace
}  // namespace cairn::kv
