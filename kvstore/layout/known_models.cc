// The table of known models; its bytes per token are pinned one by one in the tests.
#include "kvstore/layout/known_models.h"

#include <algorithm>
#include <cctype>

namespace cairn::kv {
namespace {

constexpr std::string_view kPublished = "published and reproduced";
constexpr std::string_view kConfig = "config.json";
constexpr std::string_view kUnverified = "general knowledge, not verified";

KnownModel Dense(std::string_view name, const AttentionShape& shape, std::string_view source) {
  return {{std::string(name), {AttentionGroup(shape)}}, source};
}

// Full layers and sliding-window layers of the same heads.
KnownModel Mixed(std::string_view name, AttentionShape shape, uint32_t window_layers,
                 uint32_t window_tokens) {
  AttentionShape window = shape;
  window.layers = window_layers;
  window.window_tokens = window_tokens;
  return {{std::string(name), {AttentionGroup(shape), AttentionGroup(window)}}, kUnverified};
}

std::vector<KnownModel> DeepSeekModels() {
  std::vector<KnownModel> models;
  models.push_back(
      Dense("DeepSeek-67B", {.layers = 95, .kv_heads = 8, .head_dim = 128}, kPublished));
  models.push_back({{"DeepSeek-V3", {LatentGroup({.layers = 61})}}, kConfig});
  models.push_back({{"DeepSeek-V3.2", {SparseLatentGroup(61)}}, kPublished});
  models.push_back(
      {{"DeepSeek-V4-Flash", V4Groups({.csa_layers = 21, .hca_layers = 20, .window_layers = 43})},
       "calculated from the published layout, FP4 indexer"});
  models.push_back(
      {{"DeepSeek-V4-Pro", V4Groups({.csa_layers = 30, .hca_layers = 31, .window_layers = 61})},
       "calculated from the published layout, FP4 indexer"});
  models.push_back(
      {{"DeepSeek-V4.1-Flash", V41Groups({.source_ratios = {2, 2, 2, 1}, .window_layers = 20})},
       kPublished});
  return models;
}

std::vector<KnownModel> OtherModels() {
  std::vector<KnownModel> models;
  models.push_back(Dense("Llama-3-8B", {.layers = 32, .kv_heads = 8, .head_dim = 128}, kConfig));
  models.push_back(
      Dense("Llama-3-70B", {.layers = 80, .kv_heads = 8, .head_dim = 128}, kPublished));
  models.push_back(
      Dense("Llama-3.1-405B", {.layers = 126, .kv_heads = 8, .head_dim = 128}, kPublished));
  models.push_back(
      Dense("Qwen2.5-72B", {.layers = 80, .kv_heads = 8, .head_dim = 128}, kPublished));
  models.push_back(Dense("Qwen3-8B", {.layers = 36, .kv_heads = 8, .head_dim = 128}, kConfig));
  models.push_back(Dense("Qwen3-14B", {.layers = 40, .kv_heads = 8, .head_dim = 128}, kConfig));
  models.push_back(Dense("Qwen3-32B", {.layers = 64, .kv_heads = 8, .head_dim = 128}, kUnverified));
  models.push_back(
      Dense("Qwen3-30B-A3B", {.layers = 48, .kv_heads = 4, .head_dim = 128}, kUnverified));
  models.push_back(
      Dense("Qwen3-235B-A22B", {.layers = 94, .kv_heads = 4, .head_dim = 128}, kUnverified));
  models.push_back(Dense("SmolLM2-135M", {.layers = 30, .kv_heads = 3, .head_dim = 64}, kConfig));
  models.push_back(Dense("stories260K",
                         {.layers = 5, .kv_heads = 4, .head_dim = 8, .element_bytes = 4}, kConfig));
  models.push_back(Mixed("gpt-oss-20b", {.layers = 12, .kv_heads = 8, .head_dim = 64}, 12, 128));
  models.push_back(Mixed("gpt-oss-120b", {.layers = 18, .kv_heads = 8, .head_dim = 64}, 18, 128));
  models.push_back(Mixed("Gemma-3-27B", {.layers = 10, .kv_heads = 16, .head_dim = 128}, 52, 1024));
  return models;
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

std::vector<KnownModel> Table() {
  std::vector<KnownModel> models = DeepSeekModels();
  for (KnownModel& model : OtherModels()) models.push_back(std::move(model));
  std::sort(models.begin(), models.end(), [](const KnownModel& a, const KnownModel& b) {
    return Lower(a.layout.model) < Lower(b.layout.model);
  });
  return models;
}

// How many leading characters two names share.
size_t SharedPrefix(std::string_view a, std::string_view b) {
  const size_t length = std::min(a.size(), b.size());
  const auto end = a.begin() + static_cast<std::ptrdiff_t>(length);
  return static_cast<size_t>(std::mismatch(a.begin(), end, b.begin()).first - a.begin());
}

}  // namespace

std::span<const KnownModel> KnownModels() {
  static const std::vector<KnownModel> kModels = Table();
  return kModels;
}

Result<KvLayout> FindModel(std::string_view name) {
  const std::string wanted = Lower(name);
  size_t nearest = 1;
  for (const KnownModel& model : KnownModels()) {
    const std::string known = Lower(model.layout.model);
    if (known == wanted) return model.layout;
    nearest = std::max(nearest, SharedPrefix(known, wanted));
  }
  std::string names;
  for (const KnownModel& model : KnownModels()) {
    if (SharedPrefix(Lower(model.layout.model), wanted) < nearest) continue;
    names += (names.empty() ? "" : ", ") + model.layout.model;
  }
  return Status(Code::kNotFound, "no model '" + std::string(name) + "' is known" +
                                     (names.empty() ? "." : "; did you mean " + names + "?") +
                                     " Give its config.json instead, or its bytes per token");
}

}  // namespace cairn::kv
