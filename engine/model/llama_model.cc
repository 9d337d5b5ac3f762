// Reads the shape of a llama-family model, then every tensor that it calls for, and no other.
#include "engine/model/llama_model.h"

#include <limits>
#include <unordered_set>

namespace cairn::engine {
namespace {

using kv::Code;
using kv::Result;
using kv::Status;

// Metadata under the architecture's prefix: "llama.block_count".
class Metadata {
 public:
  Metadata(const GgufFile& file, std::string_view architecture)
      : file_(file), prefix_(std::string(architecture) + ".") {}

  Result<uint32_t> Count(std::string_view key) const {
    KV_ASSIGN_OR_RETURN(const uint64_t value, file_.GetUint(Name(key)));
    // Far past any real model, and small enough that products of two fit 64 bits.
    if (value == 0 || value > (1u << 28)) {
      return Status(Code::kInvalid, Name(key) + " is " + std::to_string(value));
    }
    return static_cast<uint32_t>(value);
  }
  Result<uint32_t> CountOr(std::string_view key, uint32_t otherwise) const {
    auto value = Count(key);
    return value.code() == Code::kNotFound ? otherwise : value;
  }
  Result<float> FloatOr(std::string_view key, float otherwise) const {
    auto value = file_.GetFloat(Name(key));
    if (value.code() == Code::kNotFound) return otherwise;
    KV_RETURN_IF_ERROR(value.status());
    return static_cast<float>(value.value());
  }
  Result<std::string_view> TextOr(std::string_view key, std::string_view otherwise) const {
    auto value = file_.GetString(Name(key));
    return value.code() == Code::kNotFound ? otherwise : value;
  }
  std::string Name(std::string_view key) const { return prefix_ + std::string(key); }

 private:
  const GgufFile& file_;
  const std::string prefix_;
};

Status ReadRope(const Metadata& metadata, ModelShape& shape) {
  KV_ASSIGN_OR_RETURN(shape.rope_dim, metadata.CountOr("rope.dimension_count", shape.head_dim));
  KV_ASSIGN_OR_RETURN(shape.rope_base, metadata.FloatOr("rope.freq_base", 10000.0f));
  KV_ASSIGN_OR_RETURN(const std::string_view scaling, metadata.TextOr("rope.scaling.type", "none"));
  if (scaling == "linear") {
    KV_ASSIGN_OR_RETURN(const float factor, metadata.FloatOr("rope.scaling.factor", 1.0f));
    if (!(factor > 0.0f)) return Status(Code::kInvalid, "the rope scaling factor is not positive");
    shape.rope_scale = 1.0f / factor;
  } else if (scaling != "none") {
    return Status(Code::kInvalid, "rope scaling \"" + std::string(scaling) +
                                      "\" is not supported: only none and linear are");
  }
  return Status();
}

Status CheckShape(const ModelShape& shape) {
  const auto invalid = [](std::string text) { return Status(Code::kInvalid, std::move(text)); };
  if (shape.heads % shape.kv_heads != 0) {
    return invalid(std::to_string(shape.heads) + " query heads do not share " +
                   std::to_string(shape.kv_heads) + " key/value heads evenly");
  }
  if (shape.head_dim % 2 != 0) {
    return invalid("the head width " + std::to_string(shape.head_dim) + " is odd");
  }
  if (shape.rope_dim % 2 != 0 || shape.rope_dim > shape.head_dim) {
    return invalid("rope turns " + std::to_string(shape.rope_dim) + " of the " +
                   std::to_string(shape.head_dim) + " values of a head");
  }
  if (!(shape.rope_base > 0.0f)) return invalid("the rope base is not positive");
  if (!(shape.norm_epsilon >= 0.0f)) return invalid("the norm epsilon is negative");
  return Status();
}

Result<ModelShape> ReadShape(const GgufFile& file) {
  KV_ASSIGN_OR_RETURN(const std::string_view architecture, file.GetString("general.architecture"));
  if (architecture != "llama" && architecture != "qwen2") {
    return Status(Code::kInvalid, "the architecture \"" + std::string(architecture) +
                                      "\" is not supported: llama and qwen2 are");
  }
  const Metadata metadata(file, architecture);
  ModelShape shape;
  shape.architecture = architecture;
  if (architecture == "qwen2") shape.rope_pairs = RopePairs::kHalves;
  KV_ASSIGN_OR_RETURN(shape.layers, metadata.Count("block_count"));
  KV_ASSIGN_OR_RETURN(shape.hidden, metadata.Count("embedding_length"));
  KV_ASSIGN_OR_RETURN(shape.ffn, metadata.Count("feed_forward_length"));
  KV_ASSIGN_OR_RETURN(shape.heads, metadata.Count("attention.head_count"));
  KV_ASSIGN_OR_RETURN(shape.kv_heads, metadata.CountOr("attention.head_count_kv", shape.heads));
  KV_ASSIGN_OR_RETURN(shape.context_max, metadata.Count("context_length"));
  KV_ASSIGN_OR_RETURN(shape.norm_epsilon,
                      metadata.FloatOr("attention.layer_norm_rms_epsilon", 1e-5f));
  KV_ASSIGN_OR_RETURN(shape.head_dim,
                      metadata.CountOr("attention.key_length", shape.hidden / shape.heads));
  KV_ASSIGN_OR_RETURN(const uint32_t value_dim,
                      metadata.CountOr("attention.value_length", shape.head_dim));
  if (value_dim != shape.head_dim) {
    return Status(Code::kInvalid, "keys and values of different widths are not supported");
  }
  auto experts = file.GetUint(metadata.Name("expert_count"));
  if (experts.ok() && experts.value() > 0) {
    return Status(Code::kInvalid, "mixtures of experts are not supported");
  }
  KV_RETURN_IF_ERROR(ReadRope(metadata, shape));
  KV_RETURN_IF_ERROR(CheckShape(shape));
  return shape;
}

// Takes tensors by name, checks what they look like, and remembers which were taken.
class TensorTaker {
 public:
  explicit TensorTaker(const GgufFile& file) : file_(file) {}

  Result<TensorView> Matrix(const std::string& name, uint64_t rows, uint64_t columns) {
    KV_ASSIGN_OR_RETURN(TensorView tensor, Take(name));
    if (tensor.rows() == rows && tensor.columns() == columns) return tensor;
    return Status(Code::kInvalid, "tensor " + name + " is " + std::to_string(tensor.rows()) +
                                      " x " + std::to_string(tensor.columns()) +
                                      ", the model's shape asks " + std::to_string(rows) + " x " +
                                      std::to_string(columns));
  }
  Result<TensorView> Vector(const std::string& name, uint64_t size) {
    return Matrix(name, 1, size);
  }
  // Without dims when the file has no such tensor.
  Result<TensorView> VectorIfThere(const std::string& name, uint64_t size) {
    auto tensor = Vector(name, size);
    if (tensor.code() == Code::kNotFound) return TensorView();
    return tensor;
  }
  Result<TensorView> Take(const std::string& name) {
    KV_ASSIGN_OR_RETURN(TensorView tensor, file_.GetTensor(name));
    taken_.insert(name);
    return tensor;
  }

  // A tensor that nobody asked for would change the result, if we knew how.
  Status CheckAllTaken() const {
    for (const TensorView& tensor : file_.tensors()) {
      if (!taken_.contains(std::string(tensor.name))) {
        return Status(Code::kInvalid, "tensor " + std::string(tensor.name) +
                                          " is not part of the models that we compute");
      }
    }
    return Status();
  }

 private:
  const GgufFile& file_;
  std::unordered_set<std::string> taken_;
};

Result<LayerWeights> TakeLayer(TensorTaker& taker, const ModelShape& shape, uint32_t layer) {
  const std::string prefix = "blk." + std::to_string(layer) + ".";
  const uint64_t hidden = shape.hidden, query = shape.query_width(), kv_width = shape.kv_width();
  LayerWeights weights;
  KV_ASSIGN_OR_RETURN(weights.attention_norm, taker.Vector(prefix + "attn_norm.weight", hidden));
  KV_ASSIGN_OR_RETURN(weights.query, taker.Matrix(prefix + "attn_q.weight", query, hidden));
  KV_ASSIGN_OR_RETURN(weights.key, taker.Matrix(prefix + "attn_k.weight", kv_width, hidden));
  KV_ASSIGN_OR_RETURN(weights.value, taker.Matrix(prefix + "attn_v.weight", kv_width, hidden));
  KV_ASSIGN_OR_RETURN(weights.query_bias, taker.VectorIfThere(prefix + "attn_q.bias", query));
  KV_ASSIGN_OR_RETURN(weights.key_bias, taker.VectorIfThere(prefix + "attn_k.bias", kv_width));
  KV_ASSIGN_OR_RETURN(weights.value_bias, taker.VectorIfThere(prefix + "attn_v.bias", kv_width));
  KV_ASSIGN_OR_RETURN(weights.attention_output,
                      taker.Matrix(prefix + "attn_output.weight", hidden, query));
  KV_ASSIGN_OR_RETURN(weights.ffn_norm, taker.Vector(prefix + "ffn_norm.weight", hidden));
  KV_ASSIGN_OR_RETURN(weights.gate, taker.Matrix(prefix + "ffn_gate.weight", shape.ffn, hidden));
  KV_ASSIGN_OR_RETURN(weights.up, taker.Matrix(prefix + "ffn_up.weight", shape.ffn, hidden));
  KV_ASSIGN_OR_RETURN(weights.down, taker.Matrix(prefix + "ffn_down.weight", hidden, shape.ffn));
  return weights;
}

Status TakeEnds(TensorTaker& taker, LlamaModel& model) {
  KV_ASSIGN_OR_RETURN(model.token_embedding, taker.Take("token_embd.weight"));
  if (model.token_embedding.columns() != model.shape.hidden) {
    return Status(Code::kInvalid, "tensor token_embd.weight has rows of " +
                                      std::to_string(model.token_embedding.columns()) +
                                      ", the model is " + std::to_string(model.shape.hidden) +
                                      " wide");
  }
  const uint64_t vocab = model.token_embedding.rows();
  if (vocab > (1u << 28)) return Status(Code::kInvalid, "the vocabulary is too large");
  model.shape.vocab = static_cast<uint32_t>(vocab);
  KV_ASSIGN_OR_RETURN(model.output_norm, taker.Vector("output_norm.weight", model.shape.hidden));
  auto output = taker.Matrix("output.weight", vocab, model.shape.hidden);
  if (!output.ok() && output.code() != Code::kNotFound) return output.status();
  model.output = output.ok() ? std::move(output).value() : model.token_embedding;
  KV_ASSIGN_OR_RETURN(model.rope_factors,
                      taker.VectorIfThere("rope_freqs.weight", model.shape.rope_dim / 2));
  return Status();
}

}  // namespace

Result<LlamaModel> LlamaModel::Load(const GgufFile& file) {
  LlamaModel model;
  KV_ASSIGN_OR_RETURN(model.shape, ReadShape(file));
  // Each layer has tensors of its own, so a count past them is a lie: say so before looping.
  if (model.shape.layers > file.tensors().size()) {
    return Status(Code::kInvalid, "the file has fewer tensors than its " +
                                      std::to_string(model.shape.layers) + " layers need");
  }
  TensorTaker taker(file);
  KV_RETURN_IF_ERROR(TakeEnds(taker, model));
  for (uint32_t layer = 0; layer < model.shape.layers; ++layer) {
    KV_ASSIGN_OR_RETURN(LayerWeights weights, TakeLayer(taker, model.shape, layer));
    model.layers.push_back(std::move(weights));
  }
  KV_RETURN_IF_ERROR(taker.CheckAllTaken());
  for (const TensorView& tensor : file.tensors()) {
    model.shape.parameters += tensor.rows() * tensor.columns();
  }
  return model;
}

}  // namespace cairn::engine
