// The arithmetic of KV layouts, and the entry anatomies of the DeepSeek families.
#include "kvstore/layout/kv_layout.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "kvstore/base/units.h"

namespace cairn::kv {
namespace {

// `fp8_ds_mla`: 448 FP8 channels, 64 BF16 rotary channels, 8 B of scales.
constexpr uint64_t kV4EntryBytes = 448 + 128 + 8;
// An indexer key has 128 channels: MXFP4 with a scale per 32, or FP8 with one 4 B scale.
constexpr uint64_t kIndexerBytesFp4 = 64 + 4;
constexpr uint64_t kIndexerBytesFp8 = 128 + 4;
// V4.1's main entry has 512 channels: FP4 with an E4M3 scale per 16, or FP8 with 16 B of scales.
constexpr uint64_t kV41EntryBytesFp4 = 256 + 32;
constexpr uint64_t kV41EntryBytesFp8 = 512 + 16;

double GroupBytesPerToken(const KvGroup& group) {
  if (group.window_tokens != 0) return 0;
  return static_cast<double>(group.layers) * static_cast<double>(group.entry_bytes) /
         static_cast<double>(group.tokens_per_entry);
}

}  // namespace

double KvLayout::BytesPerToken() const {
  double bytes = 0;
  for (const KvGroup& group : groups) bytes += GroupBytesPerToken(group);
  return bytes;
}

double KvLayout::BytesPerTokenPerRank(uint32_t tensor_parallel) const {
  KV_CHECK(tensor_parallel > 0);
  double bytes = 0;
  for (const KvGroup& group : groups) {
    bytes +=
        GroupBytesPerToken(group) / static_cast<double>(std::min(tensor_parallel, group.kv_heads));
  }
  return bytes;
}

uint64_t KvLayout::BlockBytes(uint64_t tokens) const {
  uint64_t bytes = 0;
  for (const KvGroup& group : groups) {
    if (group.window_tokens != 0) continue;
    bytes += group.layers * group.entry_bytes * DivCeil(tokens, group.tokens_per_entry);
  }
  return bytes;
}

uint64_t KvLayout::AlignmentTokens() const {
  uint64_t alignment = 1;
  for (const KvGroup& group : groups) {
    if (group.window_tokens == 0) alignment = std::lcm(alignment, uint64_t{group.tokens_per_entry});
  }
  return alignment;
}

uint64_t KvLayout::WindowBytes() const {
  uint64_t bytes = 0;
  for (const KvGroup& group : groups) {
    bytes +=
        group.layers * group.entry_bytes * DivCeil(group.window_tokens, group.tokens_per_entry);
  }
  return bytes;
}

Result<uint32_t> ElementBytes(std::string_view dtype) {
  static const std::map<std::string_view, uint32_t> kKnown = {
      {"fp32", 4},     {"float32", 4},     {"float", 4},    {"bf16", 2}, {"bfloat16", 2},
      {"fp16", 2},     {"float16", 2},     {"half", 2},     {"fp8", 1},  {"float8_e4m3fn", 1},
      {"fp8_e4m3", 1}, {"float8_e5m2", 1}, {"fp8_e5m2", 1}, {"int8", 1}};
  const auto found = kKnown.find(dtype);
  if (found != kKnown.end()) return found->second;
  return Status(Code::kInvalid, "unknown KV element type '" + std::string(dtype) +
                                    "': use one of fp32, bf16, fp16, fp8, int8");
}

KvGroup AttentionGroup(const AttentionShape& shape) {
  const uint64_t entry = uint64_t{2} * shape.kv_heads * shape.head_dim * shape.element_bytes;
  return {.name = shape.window_tokens == 0 ? "full" : "window",
          .layers = shape.layers,
          .tokens_per_entry = 1,
          .entry_bytes = entry,
          .window_tokens = shape.window_tokens,
          .kv_heads = shape.kv_heads};
}

KvGroup LatentGroup(const LatentShape& shape) {
  return {.name = "latent",
          .layers = shape.layers,
          .tokens_per_entry = 1,
          .entry_bytes = uint64_t{shape.latent_dim + shape.rope_dim} * shape.element_bytes};
}

KvGroup SparseLatentGroup(uint32_t layers) {
  constexpr uint64_t kMainBytes = 512 + 16 + 128;
  return {.name = "sparse latent",
          .layers = layers,
          .tokens_per_entry = 1,
          .entry_bytes = kMainBytes + kIndexerBytesFp8};
}

std::vector<KvGroup> V4Groups(const V4Shape& shape) {
  const uint64_t indexer =
      shape.indexer == IndexerFormat::kFp4 ? kIndexerBytesFp4 : kIndexerBytesFp8;
  return {{.name = "csa",
           .layers = shape.csa_layers,
           .tokens_per_entry = shape.csa_tokens_per_entry,
           .entry_bytes = kV4EntryBytes + indexer},
          {.name = "hca",
           .layers = shape.hca_layers,
           .tokens_per_entry = shape.hca_tokens_per_entry,
           .entry_bytes = kV4EntryBytes},
          {.name = "window",
           .layers = shape.window_layers,
           .tokens_per_entry = 1,
           .entry_bytes = kV4EntryBytes,
           .window_tokens = shape.window_tokens}};
}

std::vector<KvGroup> V41Groups(const V41Shape& shape) {
  const uint64_t entry = shape.format == V41Format::kFp4 ? kV41EntryBytesFp4 + kIndexerBytesFp4
                                                         : kV41EntryBytesFp8 + kIndexerBytesFp8;
  std::map<uint32_t, uint32_t> layers_by_ratio;
  for (const uint32_t ratio : shape.source_ratios) ++layers_by_ratio[ratio];
  std::vector<KvGroup> groups;
  for (const auto& [ratio, layers] : layers_by_ratio) {
    groups.push_back({.name = "global/" + std::to_string(ratio),
                      .layers = layers,
                      .tokens_per_entry = ratio,
                      .entry_bytes = entry});
  }
  groups.push_back({.name = "window",
                    .layers = shape.window_layers,
                    .tokens_per_entry = 1,
                    .entry_bytes = kV4EntryBytes,
                    .window_tokens = shape.window_tokens});
  return groups;
}

Status Validate(const KvLayout& layout) {
  const std::string who = layout.model.empty() ? "the layout" : "the layout of " + layout.model;
  for (const KvGroup& group : layout.groups) {
    if (group.tokens_per_entry == 0) {
      return Status(Code::kInvalid, who + ": group '" + group.name +
                                        "' packs 0 tokens into an entry; plain attention has 1");
    }
    if (group.layers > 0 && group.entry_bytes == 0) {
      return Status(Code::kInvalid,
                    who + ": entries of group '" + group.name +
                        "' are 0 bytes; check KV heads, head size and element type");
    }
    if (group.kv_heads == 0) {
      return Status(Code::kInvalid,
                    who + ": group '" + group.name + "' has 0 KV heads; use at least 1");
    }
  }
  if (layout.BytesPerToken() <= 0) {
    return Status(Code::kInvalid, who + " keeps nothing per token; check the number of layers");
  }
  return Status();
}

}  // namespace cairn::kv
