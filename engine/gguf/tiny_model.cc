// Makes a small llama-family model with random weights, for when no real one is to be had.
#include "engine/gguf/tiny_model.h"

#include <cmath>
#include <string>
#include <unordered_set>

#include "engine/gguf/byte_alphabet.h"
#include "kvstore/base/random.h"

namespace cairn::engine {
namespace {

using kv::Code;
using kv::Result;
using kv::Status;

constexpr int32_t kNormalToken = 1;
constexpr int32_t kControlToken = 3;

// Each becomes a token with its leading space, and so do its beginnings.
constexpr std::string_view kWords =
    "the of and to in is you that it he was for on are as with his they at be this have from or "
    "one had by word but not what all were we when your can said there use an each which she do "
    "how their if will up other about out many then them these so some her would make like him "
    "into time has look two more write go see number no way could people my than first water been "
    "call who oil its now find long down day did get come made may part over new sound take only "
    "little work know place year live me back give most very after thing our just name good";

constexpr std::string_view kChatTemplate =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] "
    "+ "
    "'<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' "
    "}}{% endif %}";

struct Vocabulary {
  std::vector<std::string> tokens;
  std::vector<int32_t> types;
  std::vector<std::string> merges;

  void Add(std::string token, int32_t type) {
    tokens.push_back(std::move(token));
    types.push_back(type);
  }
};

void AddWord(std::string_view word, std::unordered_set<std::string>& known, Vocabulary& target) {
  std::string left = SpellByte(' ');
  for (const char letter : word) {
    const std::string joined = left + letter;
    if (known.insert(joined).second) {
      target.merges.push_back(left + " " + letter);
      target.Add(joined, kNormalToken);
    }
    left = joined;
  }
}

Vocabulary MakeVocabulary() {
  Vocabulary vocabulary;
  vocabulary.Add("<|endoftext|>", kControlToken);
  vocabulary.Add("<|im_start|>", kControlToken);
  vocabulary.Add("<|im_end|>", kControlToken);
  for (uint32_t byte = 0; byte < 256; ++byte) {
    vocabulary.Add(SpellByte(static_cast<uint8_t>(byte)), kNormalToken);
  }
  std::unordered_set<std::string> known;
  for (size_t at = 0; at < kWords.size();) {
    const size_t end = std::min(kWords.find(' ', at), kWords.size());
    AddWord(kWords.substr(at, end - at), known, vocabulary);
    at = end + 1;
  }
  return vocabulary;
}

// Nearly normal, with deviation `scale`: a sum of four integers, so that it is exact everywhere.
float RandomWeight(kv::Random& random, float scale) {
  const uint64_t bits = random.Next();
  int32_t sum = -2 * 65535;
  for (int i = 0; i < 4; ++i) sum += static_cast<int32_t>((bits >> (16 * i)) & 0xFFFF);
  return static_cast<float>(sum) * (scale / 37837.0f);
}

class WeightMaker {
 public:
  WeightMaker(GgufWriter& writer, const TinyModelOptions& options)
      : writer_(writer), type_(options.weights), random_(options.seed) {}

  std::vector<float> Matrix(uint64_t columns, uint64_t rows, float gain) {
    const float scale = gain / std::sqrt(static_cast<float>(columns));
    std::vector<float> values(columns * rows);
    for (float& value : values) value = RandomWeight(random_, scale);
    return values;
  }

  void AddMatrix(const std::string& name, uint64_t columns, uint64_t rows, float gain) {
    writer_.AddTensor(name, type_, {columns, rows}, Matrix(columns, rows, gain));
  }

  void AddNorm(const std::string& name, uint64_t size) {
    std::vector<float> values(size);
    for (float& value : values) value = 1.0f + RandomWeight(random_, 0.1f);
    writer_.AddTensor(name, TensorType::kF32, {size}, values);
  }

  // Rows of control tokens, and of bytes that no text is made of, are zero: such tokens never win.
  void AddOutput(uint64_t columns, uint64_t rows) {
    std::vector<float> values = Matrix(columns, rows, 3.0f);
    for (uint64_t row = 0; row < 3 + 256; ++row) {
      const uint64_t byte = row - 3;
      if (row >= 3 && byte >= ' ' && byte <= '~') continue;
      for (uint64_t i = 0; i < columns; ++i) values[row * columns + i] = 0.0f;
    }
    writer_.AddTensor("output.weight", type_, {columns, rows}, values);
  }

 private:
  GgufWriter& writer_;
  const TensorType type_;
  kv::Random random_;
};

Status CheckOptions(const TinyModelOptions& options) {
  const uint32_t block = BlockValues(options.weights);
  if (options.heads == 0 || options.hidden % options.heads != 0 ||
      options.hidden / options.heads % 2 != 0) {
    return Status(Code::kInvalid, "tiny model: hidden must be an even multiple of heads");
  }
  if (options.kv_heads == 0 || options.heads % options.kv_heads != 0) {
    return Status(Code::kInvalid, "tiny model: heads must be a multiple of kv_heads");
  }
  if (options.hidden % block != 0 || options.feed_forward % block != 0 ||
      options.feed_forward == 0 || options.hidden == 0) {
    return Status(Code::kInvalid, "tiny model: hidden and feed_forward must be multiples of " +
                                      std::to_string(block) + " for " +
                                      std::string(TensorTypeName(options.weights)));
  }
  if (options.layers == 0 || options.layers > 1000 || options.context == 0) {
    return Status(Code::kInvalid, "tiny model: layers must be from 1 to 1000, context positive");
  }
  return Status();
}

void AddShape(const TinyModelOptions& options, uint32_t vocabulary_size, GgufWriter& writer) {
  writer.SetString("general.architecture", "llama");
  writer.SetString("general.type", "model");
  writer.SetString("general.name", "cairn-tiny");
  writer.SetUint32("general.quantization_version", 2);
  writer.SetUint32("llama.block_count", options.layers);
  writer.SetUint32("llama.context_length", options.context);
  writer.SetUint32("llama.embedding_length", options.hidden);
  writer.SetUint32("llama.feed_forward_length", options.feed_forward);
  writer.SetUint32("llama.attention.head_count", options.heads);
  writer.SetUint32("llama.attention.head_count_kv", options.kv_heads);
  writer.SetFloat("llama.rope.freq_base", 10000.0f);
  writer.SetUint32("llama.rope.dimension_count", options.hidden / options.heads);
  writer.SetFloat("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  writer.SetUint32("llama.vocab_size", vocabulary_size);
}

void AddLayer(const TinyModelOptions& options, uint32_t layer, WeightMaker& weights) {
  const std::string prefix = "blk." + std::to_string(layer) + ".";
  const uint64_t kv_size = uint64_t{options.hidden} / options.heads * options.kv_heads;
  weights.AddNorm(prefix + "attn_norm.weight", options.hidden);
  weights.AddMatrix(prefix + "attn_q.weight", options.hidden, options.hidden, 2.0f);
  weights.AddMatrix(prefix + "attn_k.weight", options.hidden, kv_size, 2.0f);
  weights.AddMatrix(prefix + "attn_v.weight", options.hidden, kv_size, 1.0f);
  // More than its share, so that what stands earlier in the text matters.
  weights.AddMatrix(prefix + "attn_output.weight", options.hidden, options.hidden, 2.0f);
  weights.AddNorm(prefix + "ffn_norm.weight", options.hidden);
  weights.AddMatrix(prefix + "ffn_gate.weight", options.hidden, options.feed_forward, 1.0f);
  weights.AddMatrix(prefix + "ffn_up.weight", options.hidden, options.feed_forward, 1.0f);
  weights.AddMatrix(prefix + "ffn_down.weight", options.feed_forward, options.hidden, 1.0f);
}

void AddVocabulary(const Vocabulary& vocabulary, GgufWriter& writer) {
  writer.SetString("tokenizer.ggml.model", "gpt2");
  writer.SetString("tokenizer.ggml.pre", "smollm");
  writer.SetStrings("tokenizer.ggml.tokens", vocabulary.tokens);
  writer.SetInts("tokenizer.ggml.token_type", vocabulary.types);
  writer.SetStrings("tokenizer.ggml.merges", vocabulary.merges);
  writer.SetUint32("tokenizer.ggml.bos_token_id", kTinyTurnStart);
  writer.SetUint32("tokenizer.ggml.eos_token_id", kTinyTurnEnd);
  writer.SetUint32("tokenizer.ggml.unknown_token_id", kTinyEndOfText);
  writer.SetUint32("tokenizer.ggml.padding_token_id", kTinyTurnEnd);
  writer.SetBool("tokenizer.ggml.add_bos_token", false);
  writer.SetBool("tokenizer.ggml.add_space_prefix", false);
  writer.SetString("tokenizer.chat_template", kChatTemplate);
}

}  // namespace

void AddTinyTokenizer(GgufWriter& writer) { AddVocabulary(MakeVocabulary(), writer); }

Result<GgufWriter> MakeTinyModel(const TinyModelOptions& options) {
  KV_RETURN_IF_ERROR(CheckOptions(options));
  const Vocabulary vocabulary = MakeVocabulary();
  const uint64_t vocabulary_size = vocabulary.tokens.size();
  GgufWriter writer;
  AddShape(options, static_cast<uint32_t>(vocabulary_size), writer);
  AddVocabulary(vocabulary, writer);
  WeightMaker weights(writer, options);
  // Embeddings of deviation 1 (a matrix is scaled by its row length).
  const float unit = std::sqrt(static_cast<float>(options.hidden));
  weights.AddMatrix("token_embd.weight", options.hidden, vocabulary_size, unit);
  for (uint32_t layer = 0; layer < options.layers; ++layer) AddLayer(options, layer, weights);
  weights.AddNorm("output_norm.weight", options.hidden);
  if (!options.tied_output) weights.AddOutput(options.hidden, vocabulary_size);
  return writer;
}

}  // namespace cairn::engine
