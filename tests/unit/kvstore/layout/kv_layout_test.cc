// Bytes per token of every known model, against figures published or calculated by hand.
#include "kvstore/layout/kv_layout.h"

#include <gtest/gtest.h>

#include <map>

#include "kvstore/layout/known_models.h"
#include "tests/support/status_matchers.h"

namespace cairn::kv {
namespace {

using testing::HasCode;
using testing::IsOk;

TEST(KnownModels, KeepTheirPublishedBytesPerToken) {
  const std::map<std::string, double> expected = {
      {"DeepSeek-67B", 389'120},        // 95 x 8 x 128 x 2 x BF16; 437 times V4.1-Flash.
      {"DeepSeek-V3", 70'272},          // 61 x 576 x BF16.
      {"DeepSeek-V3.2", 48'068},        // 61 x (656 + 132).
      {"DeepSeek-V4-Flash", 3'514.25},  // 21 x 652 / 4 + 20 x 584 / 128.
      {"DeepSeek-V4-Pro", 5'031.4375},  // 30 x 652 / 4 + 31 x 584 / 128.
      {"DeepSeek-V4.1-Flash", 890},     // (3 / 2 + 1) x (288 + 68).
      {"Llama-3-8B", 131'072},
      {"Llama-3-70B", 327'680},
      {"Llama-3.1-405B", 516'096},
      {"Qwen2.5-72B", 327'680},
      {"Qwen3-8B", 147'456},
      {"Qwen3-14B", 163'840},
      {"Qwen3-32B", 262'144},
      {"Qwen3-30B-A3B", 98'304},
      {"Qwen3-235B-A22B", 192'512},
      {"SmolLM2-135M", 23'040},
      {"stories260K", 1'280},
      {"gpt-oss-20b", 24'576},   // 12 full layers x 8 x 64 x 2 x BF16.
      {"gpt-oss-120b", 36'864},  // 18 of them.
      {"Gemma-3-27B", 81'920},   // 10 full layers x 16 x 128 x 2 x BF16.
  };
  ASSERT_EQ(KnownModels().size(), expected.size());
  for (const KnownModel& model : KnownModels()) {
    ASSERT_TRUE(expected.contains(model.layout.model)) << model.layout.model;
    EXPECT_DOUBLE_EQ(model.layout.BytesPerToken(), expected.at(model.layout.model))
        << model.layout.model;
    EXPECT_THAT(Validate(model.layout), IsOk());
  }
}

TEST(KvLayout, SizesOfBlocksAreWholeEntries) {
  const KvLayout v41 = FindModel("deepseek-v4.1-flash").value();
  EXPECT_EQ(v41.AlignmentTokens(), 2u);
  EXPECT_EQ(v41.BlockBytes(256), 227'840u);
  EXPECT_EQ(v41.BlockBytes(4096), 3'645'440u);
  EXPECT_EQ(v41.BlockBytes(1), 4u * 356u);  // An odd token costs three half-filled entries.
  const KvLayout v4 = FindModel("DeepSeek-V4-Flash").value();
  EXPECT_EQ(v4.AlignmentTokens(), 128u);  // lcm(4, 128).
  EXPECT_EQ(v4.BlockBytes(256), 899'648u);
  EXPECT_EQ(FindModel("DeepSeek-V3.2").value().BlockBytes(128), 6'152'704u);
}

TEST(KvLayout, WindowsAreBoundedAndNeverCountPerToken) {
  const KvLayout v41 = FindModel("DeepSeek-V4.1-Flash").value();
  EXPECT_EQ(v41.WindowBytes(), 20u * 128u * 584u);
  const KvLayout plain = FindModel("Llama-3-8B").value();
  EXPECT_EQ(plain.WindowBytes(), 0u);
  const KvLayout sliding{
      "sliding only",
      {AttentionGroup(
          {.layers = 4, .kv_heads = 1, .head_dim = 8, .element_bytes = 2, .window_tokens = 16})}};
  EXPECT_EQ(sliding.WindowBytes(), 4u * 16u * 32u);
  EXPECT_THAT(Validate(sliding), HasCode(Code::kInvalid));  // Nothing to store per token.
}

TEST(KvLayout, TensorParallelismDividesHeadsAndReplicatesLatents) {
  const KvLayout llama = FindModel("Llama-3-70B").value();
  EXPECT_DOUBLE_EQ(llama.BytesPerTokenPerRank(4), 327'680 / 4.0);
  EXPECT_DOUBLE_EQ(llama.BytesPerTokenPerRank(16), 327'680 / 8.0);  // 8 KV heads cannot be 16.
  const KvLayout latent = FindModel("DeepSeek-V3").value();
  EXPECT_DOUBLE_EQ(latent.BytesPerTokenPerRank(8), 70'272);
}

TEST(KvLayout, FormatsOfTheDeepSeekFamiliesDiffer) {
  const KvLayout fp8{"V4.1 in FP8",
                     V41Groups({.source_ratios = {2, 2, 2, 1}, .format = V41Format::kFp8})};
  EXPECT_DOUBLE_EQ(fp8.BytesPerToken(), 1'650);
  const KvLayout indexer{
      "V4-Flash, FP8 indexer",
      V4Groups({.csa_layers = 21, .hca_layers = 20, .indexer = IndexerFormat::kFp8})};
  EXPECT_DOUBLE_EQ(indexer.BytesPerToken(), 3'850.25);
}

TEST(KvLayout, ImpossibleShapesAreRefusedWithAdvice) {
  const KvLayout no_heads{"x", {AttentionGroup({.layers = 2, .kv_heads = 0, .head_dim = 64})}};
  EXPECT_THAT(Validate(no_heads), HasCode(Code::kInvalid));
  EXPECT_THAT(Validate(KvLayout{"empty", {}}), HasCode(Code::kInvalid));
  EXPECT_THAT(ElementBytes("fp7"), HasCode(Code::kInvalid));
  EXPECT_EQ(ElementBytes("bfloat16").value(), 2u);
  const auto missing = FindModel("llama-3-7b");
  ASSERT_THAT(missing, HasCode(Code::kNotFound));
  EXPECT_NE(missing.status().message().find("Llama-3-70B"), std::string::npos);
}

}  // namespace
}  // namespace cairn::kv
