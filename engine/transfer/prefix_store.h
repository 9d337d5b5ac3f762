// The engine's only way to the store: loads prefixes into KV blocks, saves blocks that are full.
//
// All calls are made on the engine's thread; completions come on the store's thread through the
// callbacks, which must only hand over to the engine's thread. The pool's memory is read and
// written by the store while a call is in flight: the caller keeps a reference to each block.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/compute/kv_pool.h"
#include "kvstore/client/client.h"

namespace cairn::engine {

// What a lookup says: how many of the chain's first blocks can be had, and how soon.
struct PrefixHit {
  uint32_t blocks = 0;
  kv::Nanos load_estimate;
};

class PrefixStore {
 public:
  virtual ~PrefixStore() = default;

  virtual void Lookup(std::vector<kv::BlockId> chain,
                      std::function<void(PrefixHit)> done) = 0;

  // Reads blocks [0, into.size()) of the chain into pool blocks. `loaded` is how many of the first
  // ones arrived whole; the content of the others means nothing.
  virtual void Load(std::vector<kv::BlockId> chain, std::vector<BlockIndex> into,
                    kv::Instant deadline, std::function<void(uint32_t loaded)> done) = 0;

  // Writes blocks [first, first + blocks.size()) of the chain. `saved` counts those now stored.
  virtual void Save(std::vector<kv::BlockId> chain, uint32_t first, std::vector<BlockIndex> blocks,
                    std::function<void(uint32_t saved)> done) = 0;
};

// What makes stored KV unusable for another engine, as the namespace's fingerprint.
std::string LayoutFingerprint(const std::string& model_sha256, const PageLayout& layout);

// Backed by a namespace of a block store. All must outlive it, and the client is stopped first.
class BlockStorePrefixStore final : public PrefixStore {
 public:
  BlockStorePrefixStore(kv::Client& client, kv::NamespaceId space, KvPool& pool);

  void Lookup(std::vector<kv::BlockId> chain, std::function<void(PrefixHit)> done) override;
  void Load(std::vector<kv::BlockId> chain, std::vector<BlockIndex> into, kv::Instant deadline,
            std::function<void(uint32_t loaded)> done) override;
  void Save(std::vector<kv::BlockId> chain, uint32_t first, std::vector<BlockIndex> blocks,
            std::function<void(uint32_t saved)> done) override;

 private:
  kv::Client& client_;
  const kv::NamespaceId space_;
  KvPool& pool_;
};

// An engine without a store: nothing is ever found, nothing is kept.
class NoPrefixStore final : public PrefixStore {
 public:
  void Lookup(std::vector<kv::BlockId>, std::function<void(PrefixHit)> done) override { done({}); }
  void Load(std::vector<kv::BlockId>, std::vector<BlockIndex>, kv::Instant,
            std::function<void(uint32_t)> done) override {
    done(0);
  }
  void Save(std::vector<kv::BlockId>, uint32_t, std::vector<BlockIndex>,
            std::function<void(uint32_t)> done) override {
    done(0);
  }
};

}  // namespace cairn::engine
