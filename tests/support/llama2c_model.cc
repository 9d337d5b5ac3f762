// Turns llama2.c's checkpoint and tokenizer files into a GGUF, so that published small models run.
#include "tests/support/llama2c_model.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <vector>

namespace cairn::testing {
namespace {

using engine::GgufWriter;
using engine::TensorType;
using kv::Code;
using kv::Result;
using kv::Status;

// A file read from the front.
class Input {
 public:
  explicit Input(std::vector<char> bytes) : bytes_(std::move(bytes)) {}

  template <typename T>
  bool Read(T& value) {
    return ReadBytes(&value, sizeof(value));
  }
  bool ReadBytes(void* target, size_t size) {
    if (bytes_.size() - at_ < size) return false;
    std::memcpy(target, bytes_.data() + at_, size);
    at_ += size;
    return true;
  }
  bool AtEnd() const { return at_ == bytes_.size(); }

 private:
  const std::vector<char> bytes_;
  size_t at_ = 0;
};

Result<Input> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Status(Code::kNotFound, "cannot read " + path);
  return Input({std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()});
}

struct Shape {
  int32_t hidden, feed_forward, layers, heads, kv_heads, vocabulary, context;
};

class Converter {
 public:
  Converter(Input input, const Shape& shape)
      : input_(std::move(input)), shape_(shape), dim_(static_cast<uint64_t>(shape.hidden)) {}

  Status AddAll(GgufWriter& writer) {
    const auto layers = static_cast<uint64_t>(shape_.layers);
    const auto inner = static_cast<uint64_t>(shape_.feed_forward);
    const uint64_t kv_dim =
        dim_ / static_cast<uint64_t>(shape_.heads) * static_cast<uint64_t>(shape_.kv_heads);
    const auto vocabulary = static_cast<uint64_t>(std::abs(shape_.vocabulary));
    KV_RETURN_IF_ERROR(Add(writer, "token_embd", {dim_, vocabulary}, 0));
    KV_RETURN_IF_ERROR(Add(writer, "attn_norm", {dim_}, layers));
    KV_RETURN_IF_ERROR(Add(writer, "attn_q", {dim_, dim_}, layers));
    KV_RETURN_IF_ERROR(Add(writer, "attn_k", {dim_, kv_dim}, layers));
    KV_RETURN_IF_ERROR(Add(writer, "attn_v", {dim_, kv_dim}, layers));
    KV_RETURN_IF_ERROR(Add(writer, "attn_output", {dim_, dim_}, layers));
    KV_RETURN_IF_ERROR(Add(writer, "ffn_norm", {dim_}, layers));
    KV_RETURN_IF_ERROR(Add(writer, "ffn_gate", {dim_, inner}, layers));
    KV_RETURN_IF_ERROR(Add(writer, "ffn_down", {inner, dim_}, layers));
    KV_RETURN_IF_ERROR(Add(writer, "ffn_up", {dim_, inner}, layers));
    KV_RETURN_IF_ERROR(Add(writer, "output_norm", {dim_}, 0));
    if (shape_.vocabulary > 0) return Status();  // The output matrix is the embedding.
    // Tables of cosines and sines, which the engine computes itself.
    std::vector<float> rotations(dim_ / static_cast<uint64_t>(shape_.heads) *
                                 static_cast<uint64_t>(shape_.context));
    if (!input_.ReadBytes(rotations.data(), rotations.size() * sizeof(float))) return TooShort();
    return Add(writer, "output", {dim_, vocabulary}, 0);
  }

 private:
  static Status TooShort() { return Status(Code::kCorrupt, "the checkpoint is too short"); }

  // One tensor, or one of each of `layers` layers, which follow one another in the file.
  Status Add(GgufWriter& writer, const std::string& name, std::vector<uint64_t> dims,
             uint64_t layers) {
    uint64_t size = 1;
    for (const uint64_t dim : dims) size *= dim;
    std::vector<float> values(size);
    for (uint64_t layer = 0; layer < std::max<uint64_t>(layers, 1); ++layer) {
      if (!input_.ReadBytes(values.data(), size * sizeof(float))) return TooShort();
      const std::string prefix = layers == 0 ? "" : "blk." + std::to_string(layer) + ".";
      writer.AddTensor(prefix + name + ".weight", TensorType::kF32, dims, values);
    }
    return Status();
  }

  Input input_;
  const Shape shape_;
  const uint64_t dim_;
};

void AddShape(const Shape& shape, GgufWriter& writer) {
  const auto number = [](int32_t value) { return static_cast<uint32_t>(value); };
  writer.SetString("general.architecture", "llama");
  writer.SetString("general.name", "llama2.c");
  writer.SetUint32("llama.block_count", number(shape.layers));
  writer.SetUint32("llama.context_length", number(shape.context));
  writer.SetUint32("llama.embedding_length", number(shape.hidden));
  writer.SetUint32("llama.feed_forward_length", number(shape.feed_forward));
  writer.SetUint32("llama.attention.head_count", number(shape.heads));
  writer.SetUint32("llama.attention.head_count_kv", number(shape.kv_heads));
  writer.SetFloat("llama.rope.freq_base", 10000.0f);
  writer.SetUint32("llama.rope.dimension_count", number(shape.hidden / shape.heads));
  writer.SetFloat("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  writer.SetUint32("llama.vocab_size", number(std::abs(shape.vocabulary)));
}

// llama2.c stores spaces as they are, and puts newlines around bos and eos.
std::string Spelling(const std::string& piece, size_t id) {
  if (id == 1) return "<s>";
  if (id == 2) return "</s>";
  std::string spelling;
  for (const char c : piece) {
    if (c == ' ') {
      spelling += "\xE2\x96\x81";
    } else {
      spelling += c;
    }
  }
  return spelling;
}

Status AddTokenizer(Input input, size_t count, GgufWriter& writer) {
  constexpr size_t kFirstByte = 3;
  std::vector<std::string> tokens;
  std::vector<int32_t> types;
  std::vector<float> scores;
  const Status too_short(Code::kCorrupt, "the tokenizer is too short");
  int32_t size_max = 0;
  if (!input.Read(size_max)) return too_short;
  for (size_t id = 0; id < count; ++id) {
    float score = 0;
    int32_t size = 0;
    if (!input.Read(score) || !input.Read(size) || size < 0 || size > size_max) return too_short;
    std::string piece(static_cast<size_t>(size), '\0');
    if (!input.ReadBytes(piece.data(), piece.size())) return too_short;
    tokens.push_back(Spelling(piece, id));
    scores.push_back(score);
    const bool byte = id >= kFirstByte && id < kFirstByte + 256;
    types.push_back(id == 0 ? 2 : id < kFirstByte ? 3 : byte ? 6 : 1);
  }
  if (!input.AtEnd()) return Status(Code::kCorrupt, "the tokenizer is of another vocabulary");
  writer.SetString("tokenizer.ggml.model", "llama");
  writer.SetStrings("tokenizer.ggml.tokens", tokens);
  writer.SetFloats("tokenizer.ggml.scores", scores);
  writer.SetInts("tokenizer.ggml.token_type", types);
  writer.SetUint32("tokenizer.ggml.bos_token_id", 1);
  writer.SetUint32("tokenizer.ggml.eos_token_id", 2);
  writer.SetUint32("tokenizer.ggml.unknown_token_id", 0);
  return Status();
}

}  // namespace

Result<GgufWriter> ReadLlama2cModel(const std::string& checkpoint_path,
                                    const std::string& tokenizer_path) {
  KV_ASSIGN_OR_RETURN(Input checkpoint, ReadFile(checkpoint_path));
  KV_ASSIGN_OR_RETURN(Input tokenizer, ReadFile(tokenizer_path));
  Shape shape = {};
  const bool plausible = checkpoint.Read(shape) && shape.hidden > 0 && shape.feed_forward > 0 &&
                         shape.layers > 0 && shape.heads > 0 && shape.kv_heads > 0 &&
                         shape.vocabulary != 0 && shape.context > 0;
  if (!plausible) return Status(Code::kCorrupt, "no llama2.c checkpoint: " + checkpoint_path);
  GgufWriter writer;
  AddShape(shape, writer);
  const auto vocabulary = static_cast<size_t>(std::abs(shape.vocabulary));
  KV_RETURN_IF_ERROR(AddTokenizer(std::move(tokenizer), vocabulary, writer));
  KV_RETURN_IF_ERROR(Converter(std::move(checkpoint), shape).AddAll(writer));
  return writer;
}

std::string StoriesFolder() {
  const char* named = std::getenv("CAIRN_STORIES");
  const std::string folder = named != nullptr ? named : CAIRN_SOURCE_DIR "/../shared/models";
  std::error_code error;
  const bool present = std::filesystem::is_regular_file(folder + "/stories260K.bin", error) &&
                       std::filesystem::is_regular_file(folder + "/tok512.bin", error);
  return present ? folder : std::string();
}

}  // namespace cairn::testing
