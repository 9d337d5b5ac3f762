// Chains SHA-256 over blocks of tokens.
#include "engine/cache/prefix_chain.h"

#include "kvstore/base/check.h"

namespace cairn::engine {

PrefixChain::PrefixChain(uint32_t block_tokens) : block_tokens_(block_tokens) {
  KV_CHECK(block_tokens_ > 0);
}

void PrefixChain::Extend(std::span<const TokenId> tokens) {
  std::vector<uint8_t> bytes(size_t{block_tokens_} * 4);
  while ((ids_.size() + 1) * block_tokens_ <= tokens.size()) {
    const auto block = tokens.subspan(ids_.size() * block_tokens_, block_tokens_);
    for (size_t i = 0; i < block.size(); ++i) {
      for (size_t b = 0; b < 4; ++b) bytes[4 * i + b] = static_cast<uint8_t>(block[i] >> (8 * b));
    }
    kv::Sha256Stream hash;
    hash.Add(ids_.empty() ? kv::AsBytes("cairn.prefix.1") : kv::ByteSpan(last_key_));
    hash.Add(bytes);
    last_key_ = hash.Finish();
    ids_.push_back({kv::Id128::FromDigest(last_key_)});
  }
}

}  // namespace cairn::engine
