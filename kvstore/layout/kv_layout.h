// What one model keeps in its KV cache, as groups of layers: bytes per token, block and window.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kvstore/base/result.h"

namespace cairn::kv {

// Layers that keep entries of one size in one way. Only layers that own a cache count; a layer
// that reads another's (V4.1's Reuse and Reindex layers, YOCO decoders) adds nothing.
struct KvGroup {
  std::string name;               // "full", "window", "csa", ...
  uint32_t layers = 0;            // How many layers own such a cache.
  uint32_t tokens_per_entry = 1;  // Compression along the sequence; 1 for plain attention.
  uint64_t entry_bytes = 0;       // One entry of one layer, scales and indexer key included.
  uint32_t window_tokens = 0;     // 0 = the whole history is kept; else only the last tokens are.
  uint32_t kv_heads = 1;  // Tensor parallelism splits by heads; 1 = replicated on each rank.
};

struct KvLayout {
  std::string model;
  std::vector<KvGroup> groups;

  // Growth per token of history: what a store must keep. Fractions are real (3,514.25 for
  // V4-Flash).
  double BytesPerToken() const;
  // The same for one rank of a tensor-parallel engine. Heads are split until one is left on each
  // rank, then replicated. Data parallelism never divides.
  double BytesPerTokenPerRank(uint32_t tensor_parallel) const;
  // The exact size of a block that starts on an aligned token: whole entries, the last one rounded
  // up.
  uint64_t BlockBytes(uint64_t tokens) const;
  // Blocks of a multiple of this many tokens share no entry with their neighbours.
  uint64_t AlignmentTokens() const;
  // One snapshot of all window groups: bounded, kept in memory and never on SSD.
  uint64_t WindowBytes() const;
};

// Bytes of one element as engines name them: "fp32", "bf16", "fp16", "fp8", "int8" (with the usual
// aliases "bfloat16", "float16", "float32", "float8_e4m3fn"). kInvalid names what is known.
Result<uint32_t> ElementBytes(std::string_view dtype);

// --- Makers of the common groups. Counts of zero make an empty group, which costs nothing. ---

struct AttentionShape {
  uint32_t layers = 0;
  uint32_t kv_heads = 0;  // num_key_value_heads, never num_attention_heads.
  uint32_t head_dim = 0;  // The published one, which need not be hidden size / heads.
  uint32_t element_bytes = 2;
  uint32_t window_tokens = 0;
};
// Keys and values per head: multi-head, grouped-query, multi-query attention, sliding or not.
KvGroup AttentionGroup(const AttentionShape& shape);

struct LatentShape {
  uint32_t layers = 0;
  uint32_t latent_dim = 512;  // kv_lora_rank.
  uint32_t rope_dim = 64;     // qk_rope_head_dim.
  uint32_t element_bytes = 2;
};
// Multi-head latent attention (DeepSeek V2, V3): one latent and one rotary key, shared by all
// heads.
KvGroup LatentGroup(const LatentShape& shape);

// DeepSeek V3.2: latent in FP8 with 16 B of scales and a BF16 rotary key (656 B), and an FP8
// indexer key of 128 B with a 4 B scale.
KvGroup SparseLatentGroup(uint32_t layers);

enum class IndexerFormat : uint8_t { kFp4, kFp8 };

struct V4Shape {
  uint32_t csa_layers = 0;     // Compressed sparse attention, with an indexer.
  uint32_t hca_layers = 0;     // Heavily compressed attention, without.
  uint32_t window_layers = 0;  // Layers with a sliding window: all of them in V4.
  uint32_t window_tokens = 128;
  uint32_t csa_tokens_per_entry = 4;
  uint32_t hca_tokens_per_entry = 128;
  IndexerFormat indexer = IndexerFormat::kFp4;
};
std::vector<KvGroup> V4Groups(const V4Shape& shape);

enum class V41Format : uint8_t { kFp4, kFp8 };

struct V41Shape {
  std::vector<uint32_t> source_ratios;  // Tokens per entry of each KV source layer: {2, 2, 2, 1}.
  uint32_t window_layers = 0;           // Encoder layers: decoder windows are rebuilt, never kept.
  uint32_t window_tokens = 128;
  V41Format format = V41Format::kFp4;
};
std::vector<KvGroup> V41Groups(const V41Shape& shape);

// Says which field is impossible and what to do about it. An empty layout is kInvalid.
Status Validate(const KvLayout& layout);

}  // namespace cairn::kv
