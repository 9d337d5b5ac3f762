// SmolLM2's own tokenizer against llama.cpp's token ids for the same file.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/tokens/tokenizer.h"
#include "tests/support/status_matchers.h"
#include "tests/support/tiny_model.h"

namespace cairn::engine {
namespace {

// goldens/smollm2.json: python3 make_token_goldens.py SmolLM2-135M-Instruct.Q4_1.gguf
TEST(RealTokens, EqualLlamaCpps) {
  const std::string path = testing::RealModelPath();
  if (path.empty()) GTEST_SKIP() << testing::kNoRealModel;
  const auto file = GgufFile::Open(path).value();
  const auto tokenizer = Tokenizer::Create(*file).value();
  const auto cases = nlohmann::json::parse(std::ifstream(CAIRN_GOLDENS "smollm2.json"));
  ASSERT_GE(cases.size(), 20u);
  for (const auto& golden : cases) {
    const auto text = golden["text"].get<std::string>();
    EXPECT_EQ(tokenizer->Encode(text), golden["tokens"].get<std::vector<TokenId>>()) << text;
    EXPECT_EQ(tokenizer->Decode(tokenizer->Encode(text)), text);
  }
}

}  // namespace
}  // namespace cairn::engine
