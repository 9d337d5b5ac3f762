// All weights of a model in the form that the kernels read.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/compute/cpu/packed_matrix.h"
#include "engine/model/llama_model.h"

namespace cairn::engine {

// Floats are padded with zeros to a multiple of 16.
using PaddedFloats = std::vector<float>;

struct PackedLayer {
  PaddedFloats attention_norm, ffn_norm;
  PackedMatrix query, key, value, attention_output;
  PaddedFloats query_bias, key_bias, value_bias;  // Empty: none.
  PackedMatrix gate, up, down;
};

struct PackedModel {
  std::vector<PackedLayer> layers;
  PaddedFloats output_norm;
  PackedMatrix output;
  TensorView token_embedding;  // Read row by row, from the file.
  PaddedFloats rope_factors;   // Empty: none.

  explicit PackedModel(const LlamaModel& model);
};

}  // namespace cairn::engine
