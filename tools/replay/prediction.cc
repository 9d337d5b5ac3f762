// The numbers of the store's reclaimer, segments and records, put into the policy model.
#include "tools/replay/prediction.h"

#include <algorithm>
#include <utility>

#include "kvstore/client/stripe_plan.h"
#include "kvstore/node/embedded/embedded_node.h"
#include "kvstore/segment/format.h"
#include "kvstore/types/limits.h"

namespace cairn::tools {
namespace {

// What kv::Node leaves for a record's header.
constexpr uint64_t kRecordOverheadMax = kv::kManifestSizeMax + 4 * kv::kSectorSize;

}  // namespace

StorePolicyOptions PolicyOf(const StoreShape& shape) {
  const uint64_t target_bytes = shape.capacity_bytes / shape.targets;
  const uint64_t segment = kv::SegmentSizeFor(target_bytes);
  const uint64_t segments = (target_bytes - kv::kSegmentsOffset) / segment;
  return {.capacity_bytes = segments * segment * shape.targets,
          .targets = shape.targets,
          .segment_bytes = segment,
          .block_tokens = shape.block_tokens,
          .bytes_per_token =
              static_cast<double>(kv::AlignUp(shape.block_bytes, kv::kSectorSize)) /
              static_cast<double>(shape.block_tokens),
          .payload_bytes_max = kv::PreferredPayload(segment - kRecordOverheadMax, 10),
          .header_bytes = kv::kSectorSize,
          .classes = {{.name = "replay", .ttl_ms = INT64_MAX / 4, .refresh_on_hit = true}}};
}

kv::Result<Prediction> Prediction::Create(const StoreShape& shape) {
  KV_ASSIGN_OR_RETURN(StorePolicy policy, StorePolicy::Create(PolicyOf(shape)));
  return Prediction(shape, std::move(policy));
}

Prediction::Prediction(const StoreShape& shape, StorePolicy policy)
    : shape_(shape), policy_(std::move(policy)), curve_(shape.block_tokens) {}

void Prediction::Add(const Access& prompt, std::span<const uint64_t> chain) {
  policy_.Add({prompt.time_ms, prompt.input_tokens, chain}, 0);
  curve_.Add(prompt);
}

double Prediction::LruHitRate() const {
  return curve_.HitRate(shape_.capacity_bytes * 10 / 12 / shape_.block_bytes);
}

}  // namespace cairn::tools
