// Streamed text: whole characters only, the same however tokens cut it.
#include "engine/tokens/stream_decoder.h"

#include <gtest/gtest.h>

#include "engine/gguf/gguf_writer.h"
#include "engine/gguf/tiny_model.h"
#include "engine/tokens/unicode.h"
#include "kvstore/base/random.h"

namespace cairn::engine {
namespace {

std::unique_ptr<Tokenizer> TinyTokenizer() {
  GgufWriter writer;
  AddTinyTokenizer(writer);
  return Tokenizer::Create(*GgufFile::Parse(writer.Finish()).value()).value();
}

// In tiny models every byte has its token, in order, after the three control tokens.
TokenId ByteTokenOf(char byte) { return 3u + static_cast<uint8_t>(byte); }

std::vector<std::string> PushBytes(std::string_view bytes) {
  const auto tokenizer = TinyTokenizer();
  StreamDecoder decoder(*tokenizer);
  std::vector<std::string> pieces;
  for (const char byte : bytes) pieces.push_back(decoder.Push(ByteTokenOf(byte)));
  pieces.push_back(decoder.Finish());
  return pieces;
}

std::string Join(const std::vector<std::string>& pieces) {
  std::string joined;
  for (const std::string& piece : pieces) joined += piece;
  return joined;
}

TEST(StreamDecoder, HoldsACharacterBackUntilItIsWhole) {
  EXPECT_EQ(
      PushBytes("a\xC3\xA9\xF0\x9F\x98\x80z"),
      (std::vector<std::string>{"a", "", "\xC3\xA9", "", "", "", "\xF0\x9F\x98\x80", "z", ""}));
}

// python3 -c "print(b'...'.decode('utf-8', 'replace'))" gives the same.
TEST(StreamDecoder, UnfinishedAndImpossibleBytesBecomeReplacements) {
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(Join(PushBytes("a\xF0\x9F\x98")), "a" + bad);
  EXPECT_EQ(Join(PushBytes("\xC3z")), bad + "z");
  EXPECT_EQ(Join(PushBytes("\xFF\x80")), bad + bad);
  EXPECT_EQ(Join(PushBytes("\xE2\x82\xE2\x82\xAC")), bad + "\xE2\x82\xAC");
  EXPECT_EQ(Join(PushBytes("\xE0\x80\x80")), bad + bad + bad);
}

TEST(StreamDecoder, RandomBytesGiveValidTextWhateverTheCuts) {
  const auto tokenizer = TinyTokenizer();
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    kv::Random random(seed);
    std::string bytes;
    for (int i = 0; i < 40; ++i) {
      // Lead and continuation bytes more often than chance would have it.
      const uint64_t kind = random.Below(3);
      if (kind == 0) bytes += static_cast<char>(random.Below(256));
      if (kind == 1) bytes += static_cast<char>(0x80 + random.Below(64));
      if (kind == 2) bytes += static_cast<char>(0xC0 + random.Below(64));
    }
    const std::string text = Join(PushBytes(bytes));
    for (size_t at = 0; at < text.size();) {
      const Utf8Character character = CharacterAt(text, at);
      ASSERT_TRUE(character.valid) << seed;
      at += character.size;
    }
    StreamDecoder decoder(*tokenizer);
    std::string merged;
    for (const TokenId id : tokenizer->Encode(bytes)) merged += decoder.Push(id);
    ASSERT_EQ(merged + decoder.Finish(), text) << seed;
  }
}

TEST(StreamDecoder, ControlTokensAndForeignIdsSayNothing) {
  const auto tokenizer = TinyTokenizer();
  StreamDecoder decoder(*tokenizer);
  EXPECT_EQ(decoder.Push(kTinyTurnEnd), "");
  EXPECT_EQ(decoder.Push(UINT32_MAX), "");
  EXPECT_EQ(decoder.Finish(), "");
}

}  // namespace
}  // namespace cairn::engine
