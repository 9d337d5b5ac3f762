// GGUF files: what is written is read back, and questions of the wrong type are refused.
#include "engine/gguf/gguf.h"

#include <gtest/gtest.h>

#include <fstream>

#include "engine/gguf/gguf_writer.h"
#include "engine/gguf/quantize.h"
#include "engine/gguf/tiny_model.h"
#include "tests/support/status_matchers.h"
#include "tests/support/tiny_model.h"

namespace cairn::engine {
namespace {

using ::cairn::testing::HasCode;
using ::cairn::testing::IsOk;
using kv::Code;

std::unique_ptr<GgufFile> Read(const GgufWriter& writer) {
  auto file = GgufFile::Parse(writer.Finish());
  EXPECT_THAT(file, IsOk());
  return std::move(file).value();
}

TEST(Gguf, MetadataComesBackByType) {
  GgufWriter writer;
  writer.SetUint32("count", 7);
  writer.SetUint64("large", uint64_t{1} << 63);
  writer.SetFloat("epsilon", 0.5f);
  writer.SetBool("flag", true);
  writer.SetString("name", "cairn");
  writer.SetStrings("words", std::vector<std::string>{"a", "", "\xC4\xA0t"});
  writer.SetInts("types", std::vector<int32_t>{1, -3});
  writer.SetFloats("scores", std::vector<float>{0.25f, -1.0f});
  const auto file = Read(writer);
  EXPECT_EQ(file->GetUint("count").value(), 7u);
  EXPECT_EQ(file->GetUint("large").value(), uint64_t{1} << 63);
  EXPECT_EQ(file->GetFloat("epsilon").value(), 0.5);
  EXPECT_TRUE(file->GetBool("flag").value());
  EXPECT_EQ(file->GetString("name").value(), "cairn");
  EXPECT_EQ(file->GetStrings("words").value(),
            (std::vector<std::string_view>{"a", "", "\xC4\xA0t"}));
  EXPECT_EQ(file->GetInts("types").value(), (std::vector<int64_t>{1, -3}));
  EXPECT_EQ(file->GetFloats("scores").value(), (std::vector<float>{0.25f, -1.0f}));
}

TEST(Gguf, WrongTypesAndAbsentKeysAreTold) {
  GgufWriter writer;
  writer.SetUint32("count", 7);
  writer.SetString("name", "cairn");
  writer.SetInts("types", std::vector<int32_t>{1, -3});
  const auto file = Read(writer);
  EXPECT_THAT(file->GetUint("nothing"), HasCode(Code::kNotFound));
  EXPECT_THAT(file->GetUint("name"), HasCode(Code::kInvalid));
  EXPECT_THAT(file->GetString("count"), HasCode(Code::kInvalid));
  EXPECT_THAT(file->GetBool("count"), HasCode(Code::kInvalid));
  EXPECT_THAT(file->GetFloat("types"), HasCode(Code::kInvalid));
  EXPECT_THAT(file->GetFloats("types"), HasCode(Code::kInvalid));
  EXPECT_THAT(file->GetStrings("types"), HasCode(Code::kInvalid));
  EXPECT_THAT(file->GetInts("count"), HasCode(Code::kInvalid));
  EXPECT_EQ(file->GetTensor("w").status().message(), "the model has no tensor 'w'");
}

TEST(Gguf, TensorsComeBackWithShapeAndBytes) {
  std::vector<float> values(3 * 64);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / 8.0f - 10.0f;
  for (const TensorType type : {TensorType::kF32, TensorType::kF16, TensorType::kQ8_0,
                                TensorType::kQ4_0, TensorType::kQ4_1}) {
    GgufWriter writer;
    writer.AddTensor("first", TensorType::kF32, {1}, std::vector<float>{42.0f});
    writer.AddTensor("w", type, {64, 3}, values);
    const auto file = Read(writer);
    const TensorView tensor = file->GetTensor("w").value();
    EXPECT_EQ(tensor.type, type);
    EXPECT_EQ(tensor.columns(), 64u);
    EXPECT_EQ(tensor.rows(), 3u);
    std::vector<uint8_t> row(RowBytes(type, 64));
    PackRow(type, std::span(values).subspan(64, 64), row);
    const kv::ByteSpan second = tensor.bytes.subspan(row.size(), row.size());
    EXPECT_TRUE(std::equal(row.begin(), row.end(), second.begin(), second.end()));
    EXPECT_EQ(file->tensors().size(), 2u);
  }
}

TEST(Gguf, OpenReportsFilesThatCannotBeRead) {
  const std::string directory = ::testing::TempDir();
  EXPECT_THAT(GgufFile::Open(directory + "/absent.gguf"), HasCode(Code::kNotFound));
  EXPECT_THAT(GgufFile::Open(directory), HasCode(Code::kUnavailable));
  std::ofstream(directory + "/empty.gguf").close();
  EXPECT_THAT(GgufFile::Open(directory + "/empty.gguf"), HasCode(Code::kCorrupt));
  std::ofstream(directory + "/text.gguf") << "this is no model at all";
  const auto text = GgufFile::Open(directory + "/text.gguf");
  EXPECT_THAT(text, HasCode(Code::kCorrupt));
  EXPECT_NE(text.status().message().find("not a GGUF file"), std::string::npos);
}

TEST(Gguf, UnsupportedTensorTypesAreNamed) {
  GgufWriter writer;
  writer.AddTensor("blk.0.w", TensorType::kF32, {32}, std::vector<float>(32));
  std::vector<uint8_t> bytes = writer.Finish();
  // magic, version, counts; name length and name; dimension count, dimension; then the type.
  bytes[24 + 8 + 7 + 4 + 8] = 7;
  const auto file = GgufFile::Parse(bytes);
  EXPECT_THAT(file, HasCode(Code::kInvalid));
  EXPECT_NE(file.status().message().find("'blk.0.w' has type Q5_1"), std::string::npos)
      << file.status().ToString();
}

TEST(Gguf, OtherVersionsAreNamed) {
  std::vector<uint8_t> bytes = GgufWriter().Finish();
  bytes[4] = 2;
  EXPECT_THAT(GgufFile::Parse(bytes), IsOk());
  bytes[4] = 1;
  EXPECT_THAT(GgufFile::Parse(bytes), HasCode(Code::kInvalid));
  bytes[4] = 0;
  bytes[7] = 3;
  EXPECT_NE(GgufFile::Parse(bytes).status().message().find("big-endian"), std::string::npos);
}

TEST(Gguf, NamesThatAreThereTwiceAreRefused) {
  GgufWriter metadata;
  metadata.SetBool("flag", true);
  metadata.SetBool("flag", false);
  EXPECT_THAT(GgufFile::Parse(metadata.Finish()), HasCode(Code::kCorrupt));
  GgufWriter tensors;
  tensors.AddTensor("w", TensorType::kF32, {1}, std::vector<float>{1});
  tensors.AddTensor("w", TensorType::kF32, {1}, std::vector<float>{1});
  EXPECT_THAT(GgufFile::Parse(tensors.Finish()), HasCode(Code::kCorrupt));
}

// python3 -c "import hashlib,struct; print(hashlib.sha256(
//   b'GGUF' + struct.pack('<IQQ', 3, 0, 0) + bytes(8)).hexdigest())"
TEST(Gguf, DigestIsOverTheWholeFile) {
  const auto file = Read(GgufWriter());
  EXPECT_EQ(file->sha256_hex(), "a3718c7940c34ff91a906d0758debb656aed43d1aa8b23b99f67cb106cdbc881");
}

TEST(TinyModel, IsTheSameBytesForTheSameSeed) {
  const std::string path = testing::WriteTinyModel("tiny_same.gguf", {.seed = 5});
  const auto file = GgufFile::Open(path).value();
  EXPECT_EQ(file->GetString("general.architecture").value(), "llama");
  EXPECT_EQ(file->GetUint("llama.block_count").value(), 4u);
  EXPECT_EQ(file->GetTensor("blk.3.attn_k.weight").value().rows(), 64u);
  EXPECT_EQ(file->sha256_hex(),
            GgufFile::Parse(MakeTinyModel({.seed = 5}).value().Finish()).value()->sha256_hex());
  EXPECT_NE(file->sha256_hex(),
            GgufFile::Parse(MakeTinyModel({.seed = 6}).value().Finish()).value()->sha256_hex());
}

TEST(TinyModel, ComesInEveryTensorType) {
  for (const TensorType type :
       {TensorType::kF32, TensorType::kF16, TensorType::kQ8_0, TensorType::kQ4_0, TensorType::kQ4_1,
        TensorType::kQ4_K, TensorType::kQ6_K}) {
    const auto model = MakeTinyModel(
        {.weights = type, .layers = 1, .hidden = 256, .feed_forward = 256, .tied_output = true});
    ASSERT_THAT(model, IsOk());
    const auto file = Read(model.value());
    EXPECT_EQ(file->GetTensor("token_embd.weight").value().type, type);
    EXPECT_THAT(file->GetTensor("output.weight"), HasCode(Code::kNotFound));
  }
}

TEST(TinyModel, RefusesShapesThatDoNotFit) {
  EXPECT_THAT(MakeTinyModel({.weights = TensorType::kQ4_K}), HasCode(Code::kInvalid));
  EXPECT_THAT(MakeTinyModel({.heads = 3}), HasCode(Code::kInvalid));
  EXPECT_THAT(MakeTinyModel({.kv_heads = 3}), HasCode(Code::kInvalid));
  EXPECT_THAT(MakeTinyModel({.layers = 0}), HasCode(Code::kInvalid));
}

TEST(RealModel, OpensWithEveryTensorInBounds) {
  const std::string path = testing::RealModelPath();
  if (path.empty()) GTEST_SKIP() << testing::kNoRealModel;
  const auto opened = GgufFile::Open(path);
  ASSERT_THAT(opened, IsOk());
  const GgufFile& file = *opened.value();
  EXPECT_EQ(file.GetString("general.architecture").value(), "llama");
  EXPECT_EQ(file.GetStrings("tokenizer.ggml.tokens").value().size(), 49152u);
  EXPECT_EQ(file.tensors().size(), 272u);
  uint64_t bytes = 0;
  for (const TensorView& tensor : file.tensors()) bytes += tensor.bytes.size();
  EXPECT_GT(bytes, 90u * 1000 * 1000);
  // sha256sum SmolLM2-135M-Instruct.Q4_1.gguf
  EXPECT_EQ(file.sha256_hex(), "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53");
}

}  // namespace
}  // namespace cairn::engine
