// Packs every tensor of a model once, when the backend is made.
#include "engine/compute/cpu/packed_model.h"

#include "kvstore/base/units.h"

namespace cairn::engine {
namespace {

PaddedFloats Padded(const TensorView& tensor) {
  if (tensor.dims.empty()) return {};
  PaddedFloats values(kv::AlignUp(tensor.columns(), 16), 0.0f);
  ReadRow(tensor, 0, values.data());
  return values;
}

PackedLayer PackLayer(const LayerWeights& weights) {
  return {.attention_norm = Padded(weights.attention_norm),
          .ffn_norm = Padded(weights.ffn_norm),
          .query = PackedMatrix(weights.query),
          .key = PackedMatrix(weights.key),
          .value = PackedMatrix(weights.value),
          .attention_output = PackedMatrix(weights.attention_output),
          .query_bias = Padded(weights.query_bias),
          .key_bias = Padded(weights.key_bias),
          .value_bias = Padded(weights.value_bias),
          .gate = PackedMatrix(weights.gate),
          .up = PackedMatrix(weights.up),
          .down = PackedMatrix(weights.down)};
}

}  // namespace

PackedModel::PackedModel(const LlamaModel& model)
    : output_norm(Padded(model.output_norm)),
      output(model.output),
      token_embedding(model.token_embedding),
      rope_factors(Padded(model.rope_factors)) {
  layers.reserve(model.layers.size());
  for (const LayerWeights& weights : model.layers) layers.push_back(PackLayer(weights));
}

}  // namespace cairn::engine
