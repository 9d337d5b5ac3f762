// Tokenizers made from small files: merges, control tokens, byte fallback, refusals, and speed.
#include "engine/tokens/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/gguf/gguf_writer.h"
#include "engine/gguf/tiny_model.h"
#include "kvstore/base/random.h"
#include "tests/support/status_matchers.h"

namespace cairn::engine {
namespace {

using ::cairn::testing::HasCode;
using ::cairn::testing::IsOk;
using kv::Code;
using Ids = std::vector<TokenId>;

std::unique_ptr<GgufFile> FileOf(const GgufWriter& writer) {
  return GgufFile::Parse(writer.Finish()).value();
}

std::unique_ptr<Tokenizer> TinyTokenizer() {
  GgufWriter writer;
  AddTinyTokenizer(writer);
  return Tokenizer::Create(*FileOf(writer)).value();
}

// A SentencePiece vocabulary: <unk>, <s>, </s>, 256 bytes, then `pieces` with falling scores.
GgufWriter PieceFile(const std::vector<std::string>& pieces) {
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  std::vector<int32_t> types = {2, 3, 3};
  std::vector<float> scores = {0, 0, 0};
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof(name), "<0x%02X>", byte);
    tokens.push_back(name);
    types.push_back(6);
    scores.push_back(0);
  }
  for (const std::string& piece : pieces) {
    tokens.push_back(piece);
    types.push_back(1);
    scores.push_back(-static_cast<float>(scores.size()));
  }
  GgufWriter writer;
  writer.SetString("tokenizer.ggml.model", "llama");
  writer.SetStrings("tokenizer.ggml.tokens", tokens);
  writer.SetInts("tokenizer.ggml.token_type", types);
  writer.SetFloats("tokenizer.ggml.scores", scores);
  writer.SetUint32("tokenizer.ggml.bos_token_id", 1);
  writer.SetUint32("tokenizer.ggml.eos_token_id", 2);
  return writer;
}

std::vector<std::string> Spelled(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::string> spelled;
  for (const TokenId id : tokenizer.Encode(text)) {
    spelled.push_back(tokenizer.vocabulary().Bytes(id));
  }
  return spelled;
}

TEST(Tokenizer, MergesWordsOfTheVocabulary) {
  const auto tokenizer = TinyTokenizer();
  EXPECT_EQ(Spelled(*tokenizer, "x of the water, 12"),
            (std::vector<std::string>{"x", " of", " the", " water", ",", " ", "1", "2"}));
}

TEST(Tokenizer, ControlTokensInTextStayText) {
  const auto tokenizer = TinyTokenizer();
  const std::string text = "<|im_end|>\n<|im_start|>system\n<|endoftext|>";
  for (const TokenId id : tokenizer->Encode(text)) {
    EXPECT_NE(tokenizer->vocabulary().Kind(id), TokenKind::kControl);
  }
  EXPECT_EQ(tokenizer->Decode(tokenizer->Encode(text)), text);
  EXPECT_EQ(tokenizer->ControlAt(text, 0)->id, kTinyTurnEnd);
  EXPECT_EQ(tokenizer->ControlAt(text, 0)->size, 10u);
  EXPECT_FALSE(tokenizer->ControlAt(text, 1));
}

TEST(Tokenizer, AnyBytesComeBackFromTheirTokens) {
  const auto tokenizer = TinyTokenizer();
  kv::Random random(9);
  for (size_t size = 0; size < 200; ++size) {
    std::string text(size, '\0');
    random.Fill({reinterpret_cast<uint8_t*>(text.data()), text.size()});
    ASSERT_EQ(tokenizer->Decode(tokenizer->Encode(text)), text);
  }
}

// The definition, as slow as it reads: while any merge applies, apply the first of the list that
// does, at its leftmost place.
std::vector<std::string> MergeNaively(const std::vector<std::string>& merges, std::string word) {
  std::vector<std::string> symbols;
  for (const char c : word) symbols.emplace_back(1, c);
  for (bool merged = true; merged;) {
    merged = false;
    for (size_t rank = 0; rank < merges.size() && !merged; ++rank) {
      for (size_t i = 0; i + 1 < symbols.size() && !merged; ++i) {
        if (symbols[i] + " " + symbols[i + 1] != merges[rank]) continue;
        symbols[i] += symbols[i + 1];
        symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        merged = true;
      }
    }
  }
  return symbols;
}

TEST(Tokenizer, RandomMergesGiveWhatTheDefinitionSays) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    kv::Random random(seed);
    std::vector<std::string> tokens = {"a", "b", "c"};
    std::vector<std::string> merges;
    while (merges.size() < 30) {
      const std::string left = tokens[random.Below(tokens.size())];
      const std::string right = tokens[random.Below(tokens.size())];
      if (std::find(tokens.begin(), tokens.end(), left + right) != tokens.end()) continue;
      merges.push_back(left + " " + right);
      tokens.push_back(left + right);
    }
    GgufWriter writer;
    writer.SetString("tokenizer.ggml.model", "gpt2");
    writer.SetString("tokenizer.ggml.pre", "gpt-2");
    writer.SetStrings("tokenizer.ggml.tokens", tokens);
    writer.SetStrings("tokenizer.ggml.merges", merges);
    const auto tokenizer = Tokenizer::Create(*FileOf(writer)).value();
    for (size_t size = 1; size <= 100; ++size) {  // Across the limit between the two methods.
      std::string word;
      for (size_t i = 0; i < size; ++i) word += static_cast<char>('a' + random.Below(3));
      ASSERT_EQ(Spelled(*tokenizer, word), MergeNaively(merges, word)) << seed << " " << word;
    }
  }
}

TEST(Tokenizer, EndsAndFlagsComeFromTheFile) {
  const auto tokenizer = TinyTokenizer();
  EXPECT_EQ(tokenizer->bos(), kTinyTurnStart);
  EXPECT_EQ(tokenizer->eos(), kTinyTurnEnd);
  EXPECT_FALSE(tokenizer->eot());
  EXPECT_FALSE(tokenizer->add_bos());
  EXPECT_TRUE(tokenizer->EndsGeneration(kTinyTurnEnd));
  EXPECT_TRUE(tokenizer->EndsGeneration(kTinyEndOfText));
  EXPECT_FALSE(tokenizer->EndsGeneration(kTinyTurnStart));
  EXPECT_FALSE(tokenizer->EndsGeneration(1u << 30));
}

TEST(Tokenizer, UserDefinedTokensAreFoundWhole) {
  GgufWriter writer;
  writer.SetString("tokenizer.ggml.model", "gpt2");
  writer.SetString("tokenizer.ggml.pre", "gpt-2");
  writer.SetStrings("tokenizer.ggml.tokens",
                    std::vector<std::string>{"a", "b", "<ab>", "<", ">", "ab", "<ab"});
  writer.SetInts("tokenizer.ggml.token_type", std::vector<int32_t>{1, 1, 4, 1, 1, 1, 3});
  writer.SetStrings("tokenizer.ggml.merges", std::vector<std::string>{"a b"});
  const auto tokenizer = Tokenizer::Create(*FileOf(writer)).value();
  EXPECT_EQ(tokenizer->Encode("a<ab>ab<ab"), (Ids{0, 2, 5, 3, 5}));
}

TEST(Tokenizer, MergesWithoutATokenFallApartIntoBytes) {
  GgufWriter writer;
  writer.SetString("tokenizer.ggml.model", "gpt2");
  writer.SetString("tokenizer.ggml.pre", "gpt-2");
  writer.SetStrings("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b", "c", "abc"});
  // "ab" is a step on the way to "abc" but no token itself.
  writer.SetStrings("tokenizer.ggml.merges", std::vector<std::string>{"a b", "ab c"});
  const auto tokenizer = Tokenizer::Create(*FileOf(writer)).value();
  EXPECT_EQ(tokenizer->Encode("abcab"), (Ids{3, 0, 1}));
}

TEST(SentencePiece, MergesByScoreWithASpaceBefore) {
  const auto file = FileOf(PieceFile({"\xE2\x96\x81", "a", "b", "ab",
                                      "\xE2\x96\x81"
                                      "a",
                                      "ba"}));
  const auto tokenizer = Tokenizer::Create(*file).value();
  // "▁a" scores below "ab", so "ab" is merged first, and then nothing joins the mark.
  EXPECT_EQ(Spelled(*tokenizer, "ab ba"), (std::vector<std::string>{" ", "ab", " ", "ba"}));
  EXPECT_EQ(tokenizer->Decode(tokenizer->Encode("ab ba")), "ab ba");
  EXPECT_TRUE(tokenizer->add_bos());
  EXPECT_TRUE(tokenizer->Encode("").empty());
}

TEST(SentencePiece, FallsBackToBytes) {
  const auto tokenizer = Tokenizer::Create(*FileOf(PieceFile({"a", "\xE2\x96\x81"}))).value();
  EXPECT_EQ(tokenizer->Encode("a\xC3\xA9"), (Ids{260, 259, 3 + 0xC3, 3 + 0xA9}));
  EXPECT_EQ(tokenizer->Decode(tokenizer->Encode("a\xC3\xA9\xFF")), "a\xC3\xA9\xFF");
}

TEST(SentencePiece, ControlTokensInTextStayText) {
  const auto tokenizer =
      Tokenizer::Create(*FileOf(PieceFile({"<", "s", ">", "<s", "\xE2\x96\x81"}))).value();
  for (const TokenId id : tokenizer->Encode("<s></s><unk><0x41>")) {
    EXPECT_NE(id, 1u);
    EXPECT_NE(id, 2u);
  }
  EXPECT_EQ(tokenizer->Decode(tokenizer->Encode("<s></s><0x41>")), "<s></s><0x41>");
}

TEST(Tokenizer, FilesThatContradictThemselvesAreRefused) {
  const auto create = [](const auto& change) {
    GgufWriter writer;
    writer.SetStrings("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b"});
    change(writer);
    return Tokenizer::Create(*FileOf(writer)).status();
  };
  using W = GgufWriter;
  EXPECT_THAT(create([](W&) {}), HasCode(Code::kNotFound));
  EXPECT_THAT(create([](W& w) { w.SetString("tokenizer.ggml.model", "bert"); }),
              HasCode(Code::kInvalid));
  EXPECT_THAT(create([](W& w) { w.SetString("tokenizer.ggml.model", "gpt2"); }),
              HasCode(Code::kNotFound));
  const auto gpt2 = [&](const auto& more) {
    return create([&](W& w) {
      w.SetString("tokenizer.ggml.model", "gpt2");
      w.SetStrings("tokenizer.ggml.merges", std::vector<std::string>{"a b"});
      more(w);
    });
  };
  EXPECT_THAT(gpt2([](W&) {}), IsOk());
  EXPECT_THAT(gpt2([](W& w) { w.SetString("tokenizer.ggml.pre", "nope"); }),
              HasCode(Code::kInvalid));
  EXPECT_THAT(gpt2([](W& w) { w.SetUint32("tokenizer.ggml.eos_token_id", 2); }),
              HasCode(Code::kInvalid));
  EXPECT_THAT(gpt2([](W& w) { w.SetInts("tokenizer.ggml.token_type", std::vector<int32_t>{1}); }),
              HasCode(Code::kInvalid));
  EXPECT_THAT(create([](W& w) {
                w.SetString("tokenizer.ggml.model", "gpt2");
                w.SetStrings("tokenizer.ggml.merges", std::vector<std::string>{"ab"});
              }),
              HasCode(Code::kInvalid));
  EXPECT_THAT(create([](W& w) {
                w.SetString("tokenizer.ggml.model", "llama");
                w.SetFloats("tokenizer.ggml.scores", std::vector<float>{1});
              }),
              HasCode(Code::kInvalid));
}

TEST(Tokenizer, MegabytesOfAnythingTakeNoSquareOfTheTime) {
  // Quadratic would be hours here: a finished test is the proof.
  const size_t size = 1 << 20;
  const auto pairs = TinyTokenizer();
  const auto pieces =
      Tokenizer::Create(*FileOf(PieceFile({"a", "aa", "aaaa", "\xE2\x96\x81"}))).value();
  std::string words;
  while (words.size() < size) words += "the water of 42 ";
  for (const std::string& text :
       {std::string(size, 'a'), std::string(size, ' '), std::string(size, '\n'),
        std::string(size, '\xFF'), std::string(size, '<'), words}) {
    EXPECT_EQ(pairs->Decode(pairs->Encode(text)), text);
    EXPECT_EQ(pieces->Decode(pieces->Encode(text)), text);
  }
}

}  // namespace
}  // namespace cairn::engine
