// Understands config.json of the attention families that the project knows.
#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tools/planner/scenario_io.h"

namespace cairn::tools {
namespace {

using nlohmann::json;

kv::Status Invalid(std::string message) { return {kv::Code::kInvalid, std::move(message)}; }

// A whole number under `key`; `fallback` when it is absent or null.
kv::Result<uint32_t> Number(const json& config, const char* key, uint32_t fallback) {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) return fallback;
  if (!found->is_number_unsigned() || found->get<uint64_t>() > UINT32_C(100'000'000)) {
    return Invalid(fmt::format("{} is {}, not a sensible whole number", key, found->dump()));
  }
  return found->get<uint32_t>();
}

// What every family has, with absent counts as 0.
struct Shape {
  uint32_t layers = 0, heads = 0, kv_heads = 0, head_dim = 0, hidden = 0, element_bytes = 2;
  uint32_t latent = 0, rope = 0, indexer = 0, window = 0;
};

kv::Result<Shape> ReadShape(const json& config, const std::string& dtype) {
  Shape shape;
  KV_ASSIGN_OR_RETURN(shape.layers, Number(config, "num_hidden_layers", 0));
  KV_ASSIGN_OR_RETURN(shape.heads, Number(config, "num_attention_heads", 0));
  const bool one_head = config.contains("multi_query") && config["multi_query"] == true;
  KV_ASSIGN_OR_RETURN(shape.kv_heads,
                      Number(config, "num_key_value_heads", one_head ? 1 : shape.heads));
  KV_ASSIGN_OR_RETURN(shape.hidden, Number(config, "hidden_size", 0));
  KV_ASSIGN_OR_RETURN(shape.head_dim, Number(config, "head_dim", 0));
  KV_ASSIGN_OR_RETURN(shape.latent, Number(config, "kv_lora_rank", 0));
  KV_ASSIGN_OR_RETURN(shape.rope, Number(config, "qk_rope_head_dim", 0));
  KV_ASSIGN_OR_RETURN(shape.indexer, Number(config, "index_head_dim", 0));
  KV_ASSIGN_OR_RETURN(shape.window, Number(config, "sliding_window", 0));
  if (shape.layers == 0)
    return Invalid("num_hidden_layers is missing: is this a model's config.json?");
  std::string type = dtype;
  for (const char* key : {"torch_dtype", "dtype"}) {
    if (type.empty() && config.contains(key) && config[key].is_string()) type = config[key];
  }
  KV_ASSIGN_OR_RETURN(shape.element_bytes, kv::ElementBytes(type.empty() ? "bf16" : type));
  return shape;
}

kv::Result<std::vector<uint32_t>> Numbers(const json& config, const char* key) {
  std::vector<uint32_t> numbers;
  if (!config[key].is_array()) return Invalid(fmt::format("{} is not a list", key));
  for (const json& number : config[key]) {
    if (!number.is_number_unsigned())
      return Invalid(fmt::format("{} holds {}", key, number.dump()));
    numbers.push_back(number.get<uint32_t>());
  }
  return numbers;
}

// Only the source layers own a cache; compress_ratios says how each of them packs tokens.
kv::Result<std::vector<kv::KvGroup>> V41(const json& config, const Shape& shape) {
  KV_ASSIGN_OR_RETURN(const auto sources, Numbers(config, "kv_source_layer_ids"));
  KV_ASSIGN_OR_RETURN(const auto ratios, Numbers(config, "compress_ratios"));
  kv::V41Shape v41{.source_ratios = {},
                   .window_layers = shape.layers / 2,
                   .window_tokens = shape.window == 0 ? 128 : shape.window};
  for (const uint32_t layer : sources) {
    if (layer >= ratios.size() || ratios[layer] == 0) {
      return Invalid(fmt::format("KV source layer {} has no compress ratio", layer));
    }
    v41.source_ratios.push_back(ratios[layer]);
  }
  return kv::V41Groups(v41);
}

// Ratio 0 or 1 is a layer with a window only; the smaller other ratio has the indexer.
kv::Result<std::vector<kv::KvGroup>> V4(const json& config, const Shape& shape) {
  KV_ASSIGN_OR_RETURN(auto ratios, Numbers(config, "compress_ratios"));
  if (ratios.size() < shape.layers) return Invalid("compress_ratios has fewer entries than layers");
  ratios.resize(shape.layers);  // Entries past the layers belong to drafters.
  kv::V4Shape v4{.window_layers = shape.layers,
                 .window_tokens = shape.window == 0 ? 128 : shape.window};
  for (const uint32_t ratio : ratios) {
    if (ratio <= 1) continue;
    if (ratio == v4.csa_tokens_per_entry) {
      ++v4.csa_layers;
    } else if (ratio == v4.hca_tokens_per_entry) {
      ++v4.hca_layers;
    } else {
      return Invalid(fmt::format("compress ratio {} is not known (4 and 128 are)", ratio));
    }
  }
  return kv::V4Groups(v4);
}

// How many layers look at the whole history when the others slide.
kv::Result<uint32_t> FullLayers(const json& config, const Shape& shape) {
  const bool enabled =
      !config.contains("use_sliding_window") || config["use_sliding_window"] == true;
  const bool slides = shape.window > 0 && enabled;
  if (config.contains("layer_types") && config["layer_types"].is_array()) {
    uint32_t full = 0;
    if (config["layer_types"].size() != shape.layers)
      return Invalid("layer_types is not one per layer");
    for (const json& type : config["layer_types"]) {
      if (type != "full_attention" && type != "sliding_attention") {
        return Invalid(fmt::format(
            "layer type {} is not understood; give model.bytes_per_token instead", type.dump()));
      }
      if (type == "full_attention") ++full;
    }
    return slides ? full : shape.layers;
  }
  if (!slides) return shape.layers;
  KV_ASSIGN_OR_RETURN(const uint32_t pattern, Number(config, "sliding_window_pattern", 0));
  if (pattern > 0) return shape.layers / pattern;
  return Invalid(fmt::format(
      "sliding_window is {}, and nothing says in which layers: add layer_types (for each of the {} "
      "layers full_attention or sliding_attention) or sliding_window_pattern (6: each sixth layer "
      "is full); if no layer slides, set use_sliding_window to false",
      shape.window, shape.layers));
}

kv::Result<std::vector<kv::KvGroup>> Attention(const json& config, Shape shape) {
  if (shape.head_dim == 0 && shape.heads > 0) {
    if (shape.hidden % shape.heads != 0) {
      return Invalid(
          fmt::format("hidden_size {} is not a multiple of {} heads, and head_dim is absent",
                      shape.hidden, shape.heads));
    }
    shape.head_dim = shape.hidden / shape.heads;
  }
  if (shape.kv_heads == 0 || shape.head_dim == 0) {
    return Invalid(
        "num_key_value_heads and head_dim are missing: this family of attention is not "
        "understood; give model.bytes_per_token instead");
  }
  if (shape.heads % shape.kv_heads != 0) {
    return Invalid(
        fmt::format("{} attention heads cannot share {} KV heads", shape.heads, shape.kv_heads));
  }
  KV_ASSIGN_OR_RETURN(const uint32_t full, FullLayers(config, shape));
  kv::AttentionShape attention{.layers = full,
                               .kv_heads = shape.kv_heads,
                               .head_dim = shape.head_dim,
                               .element_bytes = shape.element_bytes};
  std::vector<kv::KvGroup> groups = {kv::AttentionGroup(attention)};
  if (full == shape.layers) return groups;
  attention.layers = shape.layers - full;
  attention.window_tokens = shape.window;
  groups.push_back(kv::AttentionGroup(attention));
  return groups;
}

// Layouts whose entries have types of their own, whatever torch_dtype says.
bool HasFixedTypes(const json& config, const Shape& shape) {
  return config.contains("kv_source_layer_ids") || config.contains("compress_ratios") ||
         (shape.latent > 0 && shape.indexer > 0);
}

kv::Result<std::vector<kv::KvGroup>> Groups(const json& config, const Shape& shape) {
  if (config.contains("kv_source_layer_ids")) return V41(config, shape);
  if (config.contains("compress_ratios")) return V4(config, shape);
  if (shape.latent > 0 && shape.indexer > 0) {
    return std::vector<kv::KvGroup>{kv::SparseLatentGroup(shape.layers)};
  }
  if (shape.latent > 0) {
    return std::vector<kv::KvGroup>{kv::LatentGroup({.layers = shape.layers,
                                                     .latent_dim = shape.latent,
                                                     .rope_dim = shape.rope,
                                                     .element_bytes = shape.element_bytes})};
  }
  // Recurrent and hybrid models keep a state, not KV per token: a guess would be wrong.
  // So do layers that use the KV of others.
  for (const char* key :
       {"ssm_cfg", "mamba_d_state", "linear_num_key_heads", "state_size", "ssm_state_size",
        "hybrid_override_pattern", "num_kv_shared_layers"}) {
    if (config.contains(key) && !config[key].is_null() && config[key] != 0) {
      return Invalid(
          fmt::format("'{}' says that some layers keep no KV of their own: not understood; "
                      "give model.bytes_per_token instead",
                      key));
    }
  }
  return Attention(config, shape);
}

}  // namespace

kv::Result<kv::KvLayout> ParseModelConfig(const std::string& text, const std::string& dtype) {
  json config = json::parse(text, nullptr, false);
  if (!config.is_object()) return Invalid("not a JSON object: is this a model's config.json?");
  // Multimodal models keep the language model one level down.
  for (const char* key : {"text_config", "language_config"}) {
    if (!config.contains(key) || !config[key].is_object()) continue;
    json inner = config[key];
    config = std::move(inner);
  }
  KV_ASSIGN_OR_RETURN(const Shape shape, ReadShape(config, dtype));
  kv::KvLayout layout;
  layout.model = config.contains("model_type") && config["model_type"].is_string()
                     ? config["model_type"].get<std::string>()
                     : "model";
  if (!dtype.empty() && HasFixedTypes(config, shape)) {
    return Invalid(
        "the KV of this layout has fixed types (those of DeepSeek V3.2, V4 and V4.1 are packed as "
        "published): leave --dtype out, or give model.bytes_per_token for another packing");
  }
  KV_ASSIGN_OR_RETURN(layout.groups, Groups(config, shape));
  KV_RETURN_IF_ERROR(kv::Validate(layout));
  return layout;
}

kv::Result<kv::KvLayout> LoadModelConfig(const std::string& path, const std::string& dtype) {
  KV_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  auto layout = ParseModelConfig(text, dtype);
  if (!layout.ok()) return kv::Status(layout.code(), path + ": " + layout.status().message());
  return layout;
}

kv::Result<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  // Inserting nothing at all, of an empty file, counts as a failure.
  if (file && file.peek() != std::ifstream::traits_type::eof()) text << file.rdbuf();
  if (file.eof()) return text.str();
  if (!file || text.fail()) return kv::Status(kv::Code::kNotFound, "cannot read " + path);
  return text.str();
}

}  // namespace cairn::tools
