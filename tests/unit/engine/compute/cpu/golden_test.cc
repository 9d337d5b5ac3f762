// SmolLM2's greedy tokens equal llama.cpp's, whose answers lie in ../golden.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "engine/compute/cpu/cpu_backend.h"
#include "engine/tokens/tokenizer.h"
#include "tests/support/llama2c_model.h"
#include "tests/support/status_matchers.h"
#include "tests/support/tiny_model.h"
#include "tests/unit/engine/compute/cpu/model_runner.h"

namespace cairn::engine {
namespace {

using ::cairn::testing::IsOk;

// golden/make_golden.py writes the digest of its model, then lines of "prompt ids" and "answer
// ids".
struct Golden {
  std::string model_sha256;
  std::vector<std::vector<TokenId>> prompts, answers;

  static Golden Read() {
    Golden golden;
    std::ifstream file(CAIRN_GOLDEN_FOLDER "/smollm2_greedy.txt");
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string kind;
      words >> kind;
      if (kind == "#") {
        std::string first, second;
        words >> first >> second >> golden.model_sha256;
        continue;
      }
      auto& lists = kind == "prompt" ? golden.prompts : golden.answers;
      lists.emplace_back();
      for (TokenId token; words >> token;) lists.back().push_back(token);
    }
    return golden;
  }
};

TEST(SmolLm2, GreedyTokensEqualThoseOfLlamaCpp) {
  const Golden golden = Golden::Read();
  ASSERT_EQ(golden.prompts.size(), 5u);
  const std::string path = cairn::testing::RealModelPath();
  if (path.empty()) GTEST_SKIP() << cairn::testing::kNoRealModel;
  auto file = GgufFile::Open(path);
  ASSERT_THAT(file, IsOk());
  if (file.value()->sha256_hex() != golden.model_sha256) {
    GTEST_SKIP() << path << " is not the model that the golden tokens were made with";
  }
  ModelRunner runner(*file.value(), {});
  for (size_t i = 0; i < golden.prompts.size(); ++i) {
    const std::vector<TokenId>& expected = golden.answers[i];
    EXPECT_EQ(runner.Greedy(golden.prompts[i], static_cast<uint32_t>(expected.size())), expected)
        << "prompt " << i;
  }
}

// A real model in F32 with small odd widths: heads of 8 values, 172 in the feed-forward layer.
TEST(Stories260K, GreedyTextEqualsThePublishedOne) {
  const std::string folder = cairn::testing::StoriesFolder();
  if (folder.empty()) GTEST_SKIP() << cairn::testing::kNoStories;
  auto writer =
      cairn::testing::ReadLlama2cModel(folder + "/stories260K.bin", folder + "/tok512.bin");
  ASSERT_THAT(writer, IsOk());
  const std::string path = ::testing::TempDir() + "cairn-golden-stories.gguf";
  ASSERT_THAT(writer.value().WriteTo(path), IsOk());
  auto file = GgufFile::Open(path);
  ASSERT_THAT(file, IsOk());
  auto tokenizer = Tokenizer::Create(*file.value());
  ASSERT_THAT(tokenizer, IsOk());
  ModelRunner runner(*file.value(), {});
  const std::vector<TokenId> bos = {1};
  const std::vector<TokenId> answer = runner.Greedy(bos, 256);
  const std::string text = tokenizer.value()->Decode(answer);
  const std::string published = cairn::testing::kStoriesGreedyText;
  const size_t start = text.find_first_not_of(' ');
  EXPECT_EQ(text.substr(start, published.size()), published);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace cairn::engine
