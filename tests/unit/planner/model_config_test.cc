// Checks that config.json of each family of attention gives the bytes per token it is known for.
#include <gmock/gmock.h>

#include "kvstore/layout/known_models.h"
#include "tests/support/status_matchers.h"
#include "tools/planner/scenario_io.h"

namespace cairn::tools {
namespace {

using testing::HasCode;
using ::testing::HasSubstr;
using testing::IsOk;

struct Case {
  const char* model;   // In the table of known models.
  const char* config;  // The fields of its config.json that matter.
};

const Case kCases[] = {
    {"Llama-3-8B", R"({"model_type": "llama", "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "hidden_size": 4096, "torch_dtype": "bfloat16"})"},
    {"Qwen3-8B", R"({"model_type": "qwen3", "num_hidden_layers": 36, "num_attention_heads": 32,
        "num_key_value_heads": 8, "hidden_size": 4096, "head_dim": 128, "sliding_window": null,
        "use_sliding_window": false})"},
    {"Qwen3-30B-A3B",
     R"({"num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4,
        "hidden_size": 2048, "head_dim": 128})"},
    {"DeepSeek-V3",
     R"({"num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": 128,
        "hidden_size": 7168, "kv_lora_rank": 512, "qk_rope_head_dim": 64})"},
    {"DeepSeek-V3.2", R"({"num_hidden_layers": 61, "num_attention_heads": 128, "kv_lora_rank": 512,
        "qk_rope_head_dim": 64, "index_head_dim": 128})"},
    {"gpt-oss-20b",
     R"({"num_hidden_layers": 24, "num_attention_heads": 64, "num_key_value_heads": 8,
        "hidden_size": 2880, "head_dim": 64, "sliding_window": 128, "layer_types": [
        "sliding_attention", "full_attention", "sliding_attention", "full_attention",
        "sliding_attention", "full_attention", "sliding_attention", "full_attention",
        "sliding_attention", "full_attention", "sliding_attention", "full_attention",
        "sliding_attention", "full_attention", "sliding_attention", "full_attention",
        "sliding_attention", "full_attention", "sliding_attention", "full_attention",
        "sliding_attention", "full_attention", "sliding_attention", "full_attention"]})"},
    {"Gemma-3-27B", R"({"model_type": "gemma3", "text_config": {"num_hidden_layers": 62,
        "num_attention_heads": 32, "num_key_value_heads": 16, "head_dim": 128, "hidden_size": 5376,
        "sliding_window": 1024, "sliding_window_pattern": 6}})"},
};

TEST(ModelConfig, EachFamilyGivesItsKnownLayout) {
  for (const Case& known : kCases) {
    const auto layout = ParseModelConfig(known.config, "");
    ASSERT_THAT(layout, IsOk()) << known.model;
    const kv::KvLayout expected = kv::FindModel(known.model).value();
    EXPECT_DOUBLE_EQ(layout.value().BytesPerToken(), expected.BytesPerToken()) << known.model;
    EXPECT_EQ(layout.value().WindowBytes(), expected.WindowBytes()) << known.model;
  }
}

std::string List(const std::vector<int>& numbers) {
  std::string text = "[";
  for (const int number : numbers) text += (text.size() > 1 ? ", " : "") + std::to_string(number);
  return text + "]";
}

TEST(ModelConfig, DeepSeekV4AndV41OwnFewerCachesThanLayers) {
  std::vector<int> flash = {0, 0};  // Two layers of windows only, then CSA and HCA in turns.
  for (int layer = 2; layer < 43; ++layer) flash.push_back(layer % 2 == 0 ? 4 : 128);
  flash.push_back(0);  // The drafter.
  const auto v4 =
      ParseModelConfig("{\"num_hidden_layers\": 43, \"compress_ratios\": " + List(flash) +
                           ", \"sliding_window\": 128}",
                       "");
  ASSERT_THAT(v4, IsOk());
  EXPECT_DOUBLE_EQ(v4.value().BytesPerToken(), 3'514.25);
  EXPECT_EQ(v4.value().AlignmentTokens(), 128u);

  std::vector<int> ratios(43, 2);  // Every layer names the ratio of the cache that it reads ...
  for (int layer = 20; layer < 40; ++layer) ratios[static_cast<size_t>(layer)] = 1;
  const auto v41 = ParseModelConfig(
      "{\"num_hidden_layers\": 40, \"sliding_window\": 128, \"compress_ratios\": " + List(ratios) +
          ", \"kv_source_layer_ids\": [2, 8, 14, 20]}",
      "");  // ... but these four own one.
  ASSERT_THAT(v41, IsOk());
  EXPECT_DOUBLE_EQ(v41.value().BytesPerToken(), 890);
  EXPECT_EQ(v41.value().WindowBytes(), 20u * 128 * 584);
}

TEST(ModelConfig, TypeCanBeOverridden) {
  EXPECT_DOUBLE_EQ(ParseModelConfig(kCases[0].config, "fp8").value().BytesPerToken(), 65'536);
  EXPECT_THAT(ParseModelConfig(kCases[0].config, "fp5"), HasCode(kv::Code::kInvalid));
}

// A type that would be ignored is refused.
TEST(ModelConfig, LayoutsWithFixedTypesTakeNoOther) {
  const char* const fixed[] = {
      kCases[4].config,
      R"({"num_hidden_layers": 2, "compress_ratios": [4, 128]})",
      R"({"num_hidden_layers": 2, "compress_ratios": [2, 1], "kv_source_layer_ids": [0, 1]})"};
  for (const char* config : fixed) {
    ASSERT_THAT(ParseModelConfig(config, ""), IsOk()) << config;
    const auto other = ParseModelConfig(config, "bf16");
    ASSERT_THAT(other, HasCode(kv::Code::kInvalid)) << config;
    EXPECT_THAT(other.status().message(), HasSubstr("leave --dtype out"));
  }
  EXPECT_THAT(ParseModelConfig(kCases[3].config, "fp8"), IsOk());  // V3 has none.
}

TEST(ModelConfig, OneHeadOfKeysMayServeAll) {
  const auto layout = ParseModelConfig(
      R"({"num_hidden_layers": 32, "num_attention_heads": 71, "hidden_size": 4544, "multi_query": true})",
      "");
  ASSERT_THAT(layout, IsOk());
  EXPECT_DOUBLE_EQ(layout.value().BytesPerToken(), 32 * 2 * 64 * 2);
}

TEST(ModelConfig, RefusesWhatItDoesNotUnderstand) {
  const std::pair<const char*, const char*> broken[] = {
      {"[]", "not a JSON object"},
      {"{\"a\": ", "not a JSON object"},
      {R"({"vocab_size": 5})", "num_hidden_layers is missing"},
      {R"({"num_hidden_layers": -3})", "not a sensible whole number"},
      {R"({"num_hidden_layers": 2, "num_attention_heads": 3, "hidden_size": 100})",
       "not a multiple"},
      {R"({"num_hidden_layers": 2, "num_attention_heads": 9, "num_key_value_heads": 2,
           "head_dim": 8})",
       "cannot share"},
      {R"({"num_hidden_layers": 2, "state_size": 16})", "KV of their own"},
      {R"({"num_hidden_layers": 2, "num_attention_heads": 2, "head_dim": 8, "num_kv_shared_layers": 1})",
       "num_kv_shared_layers"},
      {R"({"num_hidden_layers": 2, "num_attention_heads": 2, "head_dim": 8,
           "layer_types": ["full_attention", "conv"]})",
       "conv"},
      {R"({"num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads": 4,
           "head_dim": 256, "sliding_window": 4096})",
       "add layer_types (for each of the 26"},
      {R"({"num_hidden_layers": 2, "compress_ratios": [7, 4]})", "compress ratio 7"},
      {R"({"num_hidden_layers": 2, "compress_ratios": [0], "kv_source_layer_ids": [5]})",
       "layer 5"},
      {R"({"num_hidden_layers": 2, "num_attention_heads": 2, "head_dim": 8, "sliding_window": 4,
           "layer_types": ["full_attention", "linear_attention"]})",
       "linear_attention"},
  };
  for (const auto& [config, complaint] : broken) {
    const auto layout = ParseModelConfig(config, "");
    ASSERT_THAT(layout, HasCode(kv::Code::kInvalid)) << config;
    EXPECT_THAT(layout.status().message(), HasSubstr(complaint));
  }
}

}  // namespace
}  // namespace cairn::tools
