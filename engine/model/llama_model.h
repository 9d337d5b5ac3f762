// The llama family as numbers and weight views: what a backend needs to know of a model file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/gguf/gguf.h"
#include "kvstore/base/result.h"

namespace cairn::engine {

// How rotary embedding pairs the values of a head.
enum class RopePairs {
  kAdjacent,  // (0,1), (2,3), ...: llama weights in GGUF ("norm").
  kHalves,    // (0,d/2), (1,d/2+1), ...: qwen2 ("neox").
};

struct ModelShape {
  std::string architecture;  // "llama" or "qwen2".
  uint32_t layers = 0;
  uint32_t hidden = 0;  // Width of the residual stream.
  uint32_t heads = 0;   // Query heads; a multiple of kv_heads.
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t rope_dim = 0;  // The first rope_dim values of a head rotate. Even, at most head_dim.
  uint32_t ffn = 0;
  uint32_t vocab = 0;
  uint32_t context_max = 0;  // Positions the model was trained for.
  float rope_base = 10000.0f;
  float rope_scale = 1.0f;  // Positions are multiplied by it (linear scaling; 1 = none).
  RopePairs rope_pairs = RopePairs::kAdjacent;
  float norm_epsilon = 1e-5f;
  uint64_t parameters = 0;  // Values in all tensors of the file.

  uint32_t query_width() const { return heads * head_dim; }
  uint32_t kv_width() const { return kv_heads * head_dim; }
};

// Each weight is a matrix with one row per output value.
struct LayerWeights {
  TensorView attention_norm;
  TensorView query, key, value, attention_output;
  TensorView query_bias, key_bias, value_bias;  // Without dims where the model has none.
  TensorView ffn_norm;
  TensorView gate, up, down;
};

// Views into the file, which must outlive this.
struct LlamaModel {
  ModelShape shape;
  TensorView token_embedding;
  TensorView output_norm;
  TensorView output;  // The token embedding again where the file ties them.
  TensorView
      rope_factors;  // rope_dim / 2 divisors of the frequencies (Llama 3.1), or without dims.
  std::vector<LayerWeights> layers;

  // Reads the shape and checks every tensor against it. kInvalid names what is missing, of the
  // wrong shape, or not supported (another architecture, a rope scaling that we do not compute).
  static kv::Result<LlamaModel> Load(const GgufFile& file);
};

}  // namespace cairn::engine
