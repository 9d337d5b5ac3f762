// Damaged GGUF files: whatever is wrong, reading ends in a Status and stays inside the bytes.
#include <gtest/gtest.h>

#include "engine/gguf/gguf.h"
#include "engine/gguf/gguf_writer.h"
#include "kvstore/base/random.h"
#include "tests/support/status_matchers.h"

namespace cairn::engine {
namespace {

using ::cairn::testing::HasCode;
using kv::Code;

std::vector<uint8_t> SmallFile() {
  GgufWriter writer;
  writer.SetString("general.architecture", "llama");
  writer.SetUint32("general.alignment", 32);
  writer.SetBool("flag", true);
  writer.SetStrings("words", std::vector<std::string>{"one", "two", "three"});
  writer.SetInts("types", std::vector<int32_t>{1, 2, 3});
  writer.SetFloats("scores", std::vector<float>{1, 2, 3});
  writer.AddTensor("norm", TensorType::kF32, {8}, std::vector<float>(8, 1.0f));
  writer.AddTensor("matrix", TensorType::kQ8_0, {32, 4}, std::vector<float>(32 * 4, 0.5f));
  return writer.Finish();
}

// Asks everything there is to ask. The sum keeps the reads from being optimised away.
uint64_t ReadEverything(const GgufFile& file) {
  uint64_t sum = 0;
  for (const char* key :
       {"general.architecture", "general.alignment", "flag", "words", "types", "scores"}) {
    if (const auto value = file.GetUint(key); value.ok()) sum += value.value();
    if (const auto value = file.GetFloat(key); value.ok()) sum += value.value() > 0 ? 1 : 0;
    if (const auto value = file.GetBool(key); value.ok()) sum += value.value() ? 1 : 0;
    if (const auto value = file.GetString(key); value.ok()) {
      for (const char c : value.value()) sum += static_cast<uint8_t>(c);
    }
    if (const auto value = file.GetStrings(key); value.ok()) {
      for (const std::string_view word : value.value()) {
        for (const char c : word) sum += static_cast<uint8_t>(c);
      }
    }
    if (const auto value = file.GetInts(key); value.ok()) sum += value.value().size();
    if (const auto value = file.GetFloats(key); value.ok()) sum += value.value().size();
  }
  for (const TensorView& tensor : file.tensors()) {
    EXPECT_EQ(tensor.bytes.size(), RowBytes(tensor.type, tensor.columns()) * tensor.rows());
    for (const uint8_t byte : tensor.bytes) sum += byte;
  }
  return sum;
}

TEST(GgufDamage, TruncationAtEveryByteIsCorrupt) {
  const std::vector<uint8_t> whole = SmallFile();
  ASSERT_TRUE(GgufFile::Parse(whole).ok());
  for (size_t size = 0; size < whole.size(); ++size) {
    // A vector of exactly that size, so that a sanitizer sees the first byte outside.
    const auto file = GgufFile::Parse(std::vector<uint8_t>(whole.data(), whole.data() + size));
    ASSERT_THAT(file, HasCode(Code::kCorrupt)) << "cut at " << size;
    ASSERT_FALSE(file.status().message().empty());
  }
}

TEST(GgufDamage, EveryByteChangedToEveryExtremeNeverReadsOutside) {
  const std::vector<uint8_t> whole = SmallFile();
  uint64_t refused = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const uint32_t value : {0x00u, 0x01u, 0x7Fu, 0x80u, 0xFFu}) {
      std::vector<uint8_t> damaged = whole;
      damaged[at] = static_cast<uint8_t>(value);
      const auto file = GgufFile::Parse(std::move(damaged));
      if (file.ok()) {
        ReadEverything(*file.value());
      } else {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, whole.size());
}

TEST(GgufDamage, RandomDamageNeverReadsOutside) {
  const std::vector<uint8_t> whole = SmallFile();
  for (uint64_t seed = 1; seed <= 4000; ++seed) {
    kv::Random random(seed);
    std::vector<uint8_t> damaged = whole;
    const uint64_t changes = 1 + random.Below(8);
    for (uint64_t i = 0; i < changes; ++i) {
      const size_t at = random.Below(damaged.size());
      const uint64_t kind = random.Below(4);
      if (kind == 0) damaged[at] = static_cast<uint8_t>(random.Next());
      if (kind == 1) damaged[at] = static_cast<uint8_t>(damaged[at] ^ (1u << random.Below(8)));
      if (kind == 2) damaged.resize(1 + at);
      if (kind == 3) damaged.insert(damaged.begin() + static_cast<std::ptrdiff_t>(at), 0);
    }
    damaged.shrink_to_fit();
    const auto file = GgufFile::Parse(std::move(damaged));
    if (file.ok()) ReadEverything(*file.value());
  }
}

TEST(GgufDamage, HugeCountsAndSizesAreRefusedAtOnce) {
  // Every 8-byte window set to all ones: lengths, counts, dimensions, offsets.
  const std::vector<uint8_t> whole = SmallFile();
  for (size_t at = 0; at + 8 <= whole.size(); ++at) {
    for (const uint64_t huge : {UINT64_MAX, UINT64_MAX / 2, uint64_t{1} << 40, uint64_t{1} << 62}) {
      std::vector<uint8_t> damaged = whole;
      for (size_t i = 0; i < 8; ++i) damaged[at + i] = static_cast<uint8_t>(huge >> (8 * i));
      const auto file = GgufFile::Parse(std::move(damaged));
      if (file.ok()) ReadEverything(*file.value());
    }
  }
}

}  // namespace
}  // namespace cairn::engine
