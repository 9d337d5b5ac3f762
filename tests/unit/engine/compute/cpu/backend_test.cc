// The whole model on the CPU: near an independent computation, and the same bits however it is cut.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "engine/gguf/quantize.h"
#include "engine/gguf/tiny_model.h"
#include "kvstore/base/random.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/engine/compute/cpu/model_runner.h"

namespace cairn::engine {
namespace {

using ::cairn::testing::HasCode;
using kv::Code;

// Written to a file of its own, and mapped; the file is gone when the test is over.
class TinyFile {
 public:
  explicit TinyFile(const TinyModelOptions& options) {
    path_ = ::testing::TempDir() + "cairn-tiny-" +
            ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".gguf";
    std::ranges::replace(path_.begin() + static_cast<ptrdiff_t>(::testing::TempDir().size()),
                         path_.end(), '/', '-');
    KV_CHECK(MakeTinyModel(options).value().WriteTo(path_).ok());
    file_ = GgufFile::Open(path_).value();
  }
  ~TinyFile() { std::filesystem::remove(path_); }
  const GgufFile& operator*() const { return *file_; }

 private:
  std::string path_;
  std::unique_ptr<GgufFile> file_;
};

TinyModelOptions SmallOptions(TensorType weights) {
  TinyModelOptions options{.weights = weights, .layers = 2};
  if (BlockValues(weights) == 256) options.hidden = options.feed_forward = 256;
  return options;
}

std::vector<TokenId> RandomTokens(uint32_t count, uint32_t vocab, uint64_t seed = 5) {
  kv::Random random(seed);
  std::vector<TokenId> tokens;
  for (uint32_t i = 0; i < count; ++i) tokens.push_back(static_cast<TokenId>(random.Below(vocab)));
  return tokens;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// The model in double arithmetic, straight from its definition; nothing shared with the backend.
class NaiveModel {
 public:
  explicit NaiveModel(const GgufFile& file) : file_(file), model_(LlamaModel::Load(file).value()) {}

  // Of the last token.
  std::vector<double> Logits(const std::vector<TokenId>& tokens) {
    const ModelShape& shape = model_.shape;
    std::vector<Row> x;
    for (const TokenId token : tokens) x.push_back(Values("token_embd.weight").at(token));
    for (uint32_t l = 0; l < shape.layers; ++l) {
      const std::string prefix = "blk." + std::to_string(l) + ".";
      std::vector<Row> q, k, v;
      for (size_t t = 0; t < x.size(); ++t) {
        const Row normed = Norm(x[t], prefix + "attn_norm.weight");
        q.push_back(Turn(Apply(prefix + "attn_q.weight", normed), t));
        k.push_back(Turn(Apply(prefix + "attn_k.weight", normed), t));
        v.push_back(Apply(prefix + "attn_v.weight", normed));
      }
      for (size_t t = 0; t < x.size(); ++t) {
        AddTo(x[t], Apply(prefix + "attn_output.weight", Attend(q[t], k, v, t)));
        const Row normed = Norm(x[t], prefix + "ffn_norm.weight");
        Row gate = Apply(prefix + "ffn_gate.weight", normed);
        const Row up = Apply(prefix + "ffn_up.weight", normed);
        for (size_t i = 0; i < gate.size(); ++i) gate[i] *= up[i] / (1 + std::exp(-gate[i]));
        AddTo(x[t], Apply(prefix + "ffn_down.weight", gate));
      }
    }
    const bool tied = !file_.GetTensor("output.weight").ok();
    return Apply(tied ? "token_embd.weight" : "output.weight",
                 Norm(x.back(), "output_norm.weight"));
  }

 private:
  using Row = std::vector<double>;

  const std::vector<Row>& Values(const std::string& name) {
    std::vector<Row>& rows = cache_[name];
    if (!rows.empty()) return rows;
    const TensorView tensor = file_.GetTensor(name).value();
    const uint64_t row_bytes = RowBytes(tensor.type, tensor.columns());
    std::vector<float> values(tensor.columns());
    for (uint64_t r = 0; r < tensor.rows(); ++r) {
      UnpackRow(tensor.type, tensor.bytes.subspan(r * row_bytes, row_bytes), values);
      rows.emplace_back(values.begin(), values.end());
    }
    return rows;
  }
  Row Apply(const std::string& name, const Row& x) {
    Row result;
    for (const Row& weights : Values(name)) {
      double sum = 0;
      for (size_t i = 0; i < x.size(); ++i) sum += weights[i] * x[i];
      result.push_back(sum);
    }
    return result;
  }
  Row Norm(const Row& x, const std::string& name) {
    double squares = 0;
    for (const double value : x) squares += value * value;
    const double size = static_cast<double>(x.size());
    const double scale = 1 / std::sqrt(squares / size + double{model_.shape.norm_epsilon});
    Row result = Values(name).at(0);
    for (size_t i = 0; i < x.size(); ++i) result[i] *= x[i] * scale;
    return result;
  }
  Row Turn(Row x, size_t position) const {
    const uint32_t dim = model_.shape.head_dim;
    for (size_t i = 0; i < x.size(); i += 2) {
      const double power = static_cast<double>(i % dim) / dim;
      const double angle =
          static_cast<double>(position) * std::pow(double{model_.shape.rope_base}, -power);
      const double first = x[i], second = x[i + 1];
      x[i] = first * std::cos(angle) - second * std::sin(angle);
      x[i + 1] = first * std::sin(angle) + second * std::cos(angle);
    }
    return x;
  }
  Row Attend(const Row& query, const std::vector<Row>& keys, const std::vector<Row>& values,
             size_t position) const {
    const uint32_t dim = model_.shape.head_dim;
    Row result(query.size(), 0.0);
    for (uint32_t head = 0; head < model_.shape.heads; ++head) {
      const uint32_t from = head / (model_.shape.heads / model_.shape.kv_heads) * dim;
      std::vector<double> weights;
      double total = 0;
      for (size_t p = 0; p <= position; ++p) {
        double score = 0;
        for (uint32_t c = 0; c < dim; ++c) score += query[head * dim + c] * keys[p][from + c];
        weights.push_back(std::exp(score / std::sqrt(double{1.0} * dim)));
        total += weights.back();
      }
      for (size_t p = 0; p <= position; ++p) {
        for (uint32_t c = 0; c < dim; ++c) {
          result[head * dim + c] += weights[p] / total * values[p][from + c];
        }
      }
    }
    return result;
  }
  static void AddTo(Row& x, const Row& y) {
    for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  }

  const GgufFile& file_;
  const LlamaModel model_;
  std::map<std::string, std::vector<Row>> cache_;
};

class ForwardOfEachType : public ::testing::TestWithParam<TensorType> {};

TEST_P(ForwardOfEachType, IsNearTheNaiveModel) {
  const TensorType type = GetParam();
  TinyModelOptions options = SmallOptions(type);
  options.tied_output = type == TensorType::kQ4_0;
  const TinyFile file(options);
  ModelRunner runner(*file, {});
  const auto tokens = RandomTokens(40, runner.shape().vocab);
  const auto logits = runner.Logits(tokens, 0, runner.AllocateFor(40));
  const auto expected = NaiveModel(*file).Logits(tokens);
  // Against the spread of the logits: 8-bit activations move them by a few percent of it, half
  // precision KV by far less.
  double squares = 0, errors = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    squares += expected[i] * expected[i];
    errors += (logits[i] - expected[i]) * (logits[i] - expected[i]);
  }
  const bool exact = type == TensorType::kF32 || type == TensorType::kF16;
  EXPECT_LT(std::sqrt(errors / squares), exact ? 2e-3 : 8e-2);
}

TEST_P(ForwardOfEachType, GivesTheSameBitsWithEveryCutThreadAndKernel) {
  const TinyFile file(SmallOptions(GetParam()));
  ModelRunner reference(*file, {.kernels = CpuKernels::kPortable, .threads = 1});
  const auto tokens = RandomTokens(75, reference.shape().vocab);
  const auto expected = reference.Logits(tokens, 0, reference.AllocateFor(75));
  for (const auto kernels : {CpuKernels::kPortable, CpuKernels::kAvx2, CpuKernels::kAvx512}) {
    if (!CpuSupports(kernels)) continue;
    for (const uint32_t threads : {1u, 2u, 3u}) {
      ModelRunner runner(*file, {.kernels = kernels, .threads = threads});
      for (const size_t chunk : {size_t{1}, size_t{7}, size_t{32}, size_t{75}}) {
        if (kernels == CpuKernels::kPortable && chunk != 7) continue;  // Slow.
        const auto blocks = runner.AllocateFor(75);
        EXPECT_TRUE(SameBits(runner.Logits(tokens, 0, blocks, chunk), expected))
            << CpuKernelsName(kernels) << " threads " << threads << " chunk " << chunk;
        runner.Release(blocks);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ForwardOfEachType,
                         ::testing::Values(TensorType::kF32, TensorType::kF16, TensorType::kQ4_0,
                                           TensorType::kQ4_1, TensorType::kQ8_0, TensorType::kQ4_K,
                                           TensorType::kQ6_K),
                         [](const auto& of) { return std::string(TensorTypeName(of.param)); });

TEST(Forward, SequencesInOneBatchDoNotSeeEachOther) {
  const TinyFile file(SmallOptions(TensorType::kQ4_1));
  ModelRunner runner(*file, {});
  const uint32_t vocab = runner.shape().vocab;
  // A prompt's chunk, a decode step after 40 tokens, and a chunk nobody wants logits of.
  const auto first = RandomTokens(33, vocab, 1), second = RandomTokens(41, vocab, 2);
  const auto third = RandomTokens(9, vocab, 3);
  const auto first_blocks = runner.AllocateFor(33), second_blocks = runner.AllocateFor(41);
  const auto third_blocks = runner.AllocateFor(9);
  const auto expected_first = runner.Logits(first, 0, runner.AllocateFor(33));
  const auto expected_second = runner.Logits(second, 0, runner.AllocateFor(41));

  runner.Logits(std::span(second).first(40), 0, second_blocks);
  const SequenceStep steps[] = {
      {.tokens = first, .position = 0, .blocks = first_blocks, .wants_logits = true},
      {.tokens = third, .position = 0, .blocks = third_blocks, .wants_logits = false},
      {.tokens = std::span(second).last(1),
       .position = 40,
       .blocks = second_blocks,
       .wants_logits = true}};
  std::vector<float> logits(2 * vocab);
  runner.backend().Step(steps, logits);

  EXPECT_TRUE(SameBits({logits.begin(), logits.begin() + vocab}, expected_first));
  EXPECT_TRUE(SameBits({logits.begin() + vocab, logits.end()}, expected_second));
}

TEST(Forward, KvMovedAsRawBytesGivesTheSameBits) {
  const TinyFile file(SmallOptions(TensorType::kQ8_0));
  ModelRunner writer(*file, {}), reader(*file, {});
  const auto tokens = RandomTokens(70, writer.shape().vocab);
  const auto written = writer.AllocateFor(70);
  const auto expected = writer.Logits(tokens, 0, written);

  reader.AllocateFor(32);  // So that the blocks lie elsewhere.
  const auto loaded = reader.AllocateFor(70);
  for (size_t i = 0; i < 2; ++i) {  // The two full blocks.
    std::ranges::copy(writer.pool().bytes(written[i]), reader.pool().bytes(loaded[i]).begin());
  }
  const auto actual = reader.Logits(std::span(tokens).subspan(64), 64, loaded);
  EXPECT_TRUE(SameBits(actual, expected));
}

TEST(Forward, ASharedPrefixServesTwoSequences) {
  const TinyFile file(SmallOptions(TensorType::kQ8_0));
  ModelRunner runner(*file, {});
  const auto tokens = RandomTokens(40, runner.shape().vocab);
  const auto own = runner.AllocateFor(40);
  const auto expected = runner.Logits(tokens, 0, own);
  runner.pool().AddReference(own[0]);
  const std::vector<BlockIndex> shared = {own[0], *runner.pool().Allocate()};
  EXPECT_TRUE(SameBits(runner.Logits(std::span(tokens).subspan(32), 32, shared), expected));
}

TEST(ForwardDeathTest, ATokenOutsideTheVocabularyStopsTheProcess) {
  const TinyFile file(SmallOptions(TensorType::kQ8_0));
  ModelRunner runner(*file, {.threads = 1});
  const std::vector<TokenId> tokens = {runner.shape().vocab};
  const auto blocks = runner.AllocateFor(1);
  EXPECT_DEATH(runner.Logits(tokens, 0, blocks), "check failed");
}

TEST(CpuBackend, RefusesImpossibleOptionsByName) {
  const TinyFile file(SmallOptions(TensorType::kQ8_0));
  const LlamaModel model = LlamaModel::Load(*file).value();
  KvPool pool(PageLayout::For(model.shape, 32), 1);
  EXPECT_THAT(CreateCpuBackend(model, pool, {.threads = 0}), HasCode(Code::kInvalid));
}

}  // namespace
}  // namespace cairn::engine
