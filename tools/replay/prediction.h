// What the simulators expect of an embedded store of a given size, beside ideal LRU.
#pragma once

#include <cstdint>

#include "tools/cachesim/lru_curve.h"
#include "tools/cachesim/store_policy.h"

namespace cairn::tools {

struct StoreShape {
  uint64_t capacity_bytes = 0;  // Raw, over all targets.
  uint32_t targets = 12;
  uint64_t block_tokens = 0;
  uint64_t block_bytes = 0;
};

// The segments, watermark and overheads of kv::EmbeddedNode with these targets.
StorePolicyOptions PolicyOf(const StoreShape& shape);

class Prediction {
 public:
  static kv::Result<Prediction> Create(const StoreShape& shape);
  // `chain` holds the prompt's blocks and then those of the answer.
  void Add(const Access& prompt, std::span<const uint64_t> chain);

  double StoreHitRate() const { return policy_.counts().HitRate(); }
  double WriteAmplification() const { return policy_.counts().WriteAmplification(); }
  SpaceUse Space() const { return policy_.Space(); }
  // Of an LRU that may fill all of the capacity with what 10+2 leaves of it for blocks.
  double LruHitRate() const;
  double UnboundedHitRate() const { return curve_.IdealHitRate(); }

 private:
  Prediction(const StoreShape& shape, StorePolicy policy);
  StoreShape shape_;
  StorePolicy policy_;
  LruCurve curve_;
};

}  // namespace cairn::tools
