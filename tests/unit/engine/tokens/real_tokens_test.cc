// Tokenizers of real models against llama.cpp's token ids for the same files.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/tokens/tokenizer.h"
#include "tests/support/llama2c_model.h"
#include "tests/support/tiny_model.h"

namespace cairn::engine {
namespace {

void ExpectGoldenTokens(const Tokenizer& tokenizer, const std::string& golden_path) {
  const auto cases = nlohmann::json::parse(std::ifstream(golden_path));
  ASSERT_GE(cases.size(), 20u);
  for (const auto& golden : cases) {
    const auto text = golden["text"].get<std::string>();
    EXPECT_EQ(tokenizer.Encode(text), golden["tokens"].get<std::vector<TokenId>>()) << text;
    // SentencePiece spells a space as U+2581, and cannot tell it from one that was in the text.
    if (text.find("\xE2\x96\x81") != std::string::npos) continue;
    EXPECT_EQ(tokenizer.Decode(tokenizer.Encode(text)), text);
  }
}

// goldens/smollm2.json: python3 make_token_goldens.py SmolLM2-135M-Instruct.Q4_1.gguf
TEST(RealTokens, OfSmolLm2EqualLlamaCpps) {
  const std::string path = testing::RealModelPath();
  if (path.empty()) GTEST_SKIP() << testing::kNoRealModel;
  const auto file = GgufFile::Open(path).value();
  const auto tokenizer = Tokenizer::Create(*file).value();
  ExpectGoldenTokens(*tokenizer, CAIRN_GOLDENS "smollm2.json");
}

// goldens/stories260k.json: python3 make_token_goldens.py STORIES.gguf, which this test writes.
TEST(RealTokens, OfStories260kEqualLlamaCpps) {
  const std::string folder = testing::StoriesFolder();
  if (folder.empty()) GTEST_SKIP() << testing::kNoStories;
  const auto model =
      testing::ReadLlama2cModel(folder + "/stories260K.bin", folder + "/tok512.bin").value();
  ASSERT_TRUE(model.WriteTo(::testing::TempDir() + "stories260k.gguf").ok());
  const auto file = GgufFile::Parse(model.Finish()).value();
  const auto tokenizer = Tokenizer::Create(*file).value();
  ExpectGoldenTokens(*tokenizer, CAIRN_GOLDENS "stories260k.json");
}

}  // namespace
}  // namespace cairn::engine
