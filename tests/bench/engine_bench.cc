// Measures prefill and decode in tokens per second, on a real model.
//
//   engine_bench [--model FILE] [--threads N] [--kernels best|avx512|avx2|portable] [--quick]
//                [--baseline-prefill X] [--baseline-decode X] [--json FILE]
// The baselines are those of tests/bench/llama_cpp_baseline.py, measured on the same machine.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "engine/compute/cpu/cpu_backend.h"
#include "engine/gguf/gguf.h"
#include "engine/model/llama_model.h"

namespace cairn::engine {
namespace {

constexpr uint32_t kPromptTokens = 512;
constexpr uint32_t kDecodeTokens = 64;

struct Options {
  std::string model;
  std::string json;
  CpuBackendOptions backend;
  int rounds = 5;
  double baseline_prefill = 0;
  double baseline_decode = 0;
};

struct Figure {
  std::string name;
  double value = 0;
  double baseline = 0;  // 0: none was given.
};

double Seconds(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::string DefaultModel() {
  if (const char* path = std::getenv("CAIRN_MODEL")) return path;
  const char* home = std::getenv("HOME");
  return std::string(home ? home : ".") + "/.cache/cairn/models/SmolLM2-135M-Instruct.Q4_1.gguf";
}

std::optional<CpuKernels> KernelsNamed(const std::string& name) {
  for (const CpuKernels kernels :
       {CpuKernels::kBest, CpuKernels::kPortable, CpuKernels::kAvx2, CpuKernels::kAvx512}) {
    if (CpuKernelsName(kernels) == name) return kernels;
  }
  return std::nullopt;
}

std::optional<Options> Parse(int count, char** arguments) {
  Options options{.model = DefaultModel(), .json = {}, .backend = {}};
  for (int i = 1; i < count; ++i) {
    const std::string flag = arguments[i];
    if (flag == "--quick") {
      options.rounds = 2;
      continue;
    }
    if (i + 1 == count) return std::nullopt;
    const std::string value = arguments[++i];
    if (flag == "--model") {
      options.model = value;
    } else if (flag == "--json") {
      options.json = value;
    } else if (flag == "--threads") {
      options.backend.threads = static_cast<uint32_t>(std::stoul(value));
    } else if (flag == "--baseline-prefill") {
      options.baseline_prefill = std::stod(value);
    } else if (flag == "--baseline-decode") {
      options.baseline_decode = std::stod(value);
    } else if (const auto kernels = KernelsNamed(value); flag == "--kernels" && kernels) {
      options.backend.kernels = *kernels;
    } else {
      return std::nullopt;
    }
  }
  return options;
}

// The best of some rounds: other work on the machine only ever takes away.
class EngineRun {
 public:
  EngineRun(Backend& backend, std::vector<BlockIndex> blocks)
      : backend_(backend), blocks_(std::move(blocks)), logits_(backend.shape().vocab) {
    for (uint32_t i = 0; i < kPromptTokens; ++i) {
      prompt_.push_back(i * 7919 % (backend.shape().vocab - 100) + 100);
    }
  }

  void Round() {
    auto start = std::chrono::steady_clock::now();
    TokenId next = Step(prompt_, 0);
    prefill_ = std::max(prefill_, kPromptTokens / Seconds(start));
    start = std::chrono::steady_clock::now();
    for (uint32_t i = 0; i < kDecodeTokens; ++i) {
      next = Step({&next, 1}, kPromptTokens + i);
    }
    decode_ = std::max(decode_, kDecodeTokens / Seconds(start));
  }

  double prefill() const { return prefill_; }
  double decode() const { return decode_; }

 private:
  TokenId Step(std::span<const TokenId> tokens, uint32_t position) {
    const SequenceStep step{
        .tokens = tokens, .position = position, .blocks = blocks_, .wants_logits = true};
    backend_.Step({&step, 1}, logits_);
    return static_cast<TokenId>(std::ranges::max_element(logits_) - logits_.begin());
  }

  Backend& backend_;
  const std::vector<BlockIndex> blocks_;
  std::vector<TokenId> prompt_;
  std::vector<float> logits_;
  double prefill_ = 0;
  double decode_ = 0;
};

void Print(std::ostream& out, const std::vector<Figure>& figures) {
  out << "[\n";
  for (size_t i = 0; i < figures.size(); ++i) {
    const Figure& figure = figures[i];
    out << "  {\"name\": \"" << figure.name << "\", \"value\": " << figure.value
        << ", \"unit\": \"tokens/s\", \"baseline\": ";
    if (figure.baseline > 0) {
      out << figure.baseline << ", \"ratio\": " << figure.value / figure.baseline;
    } else {
      out << "null, \"ratio\": null";
    }
    out << (i + 1 < figures.size() ? "},\n" : "}\n");
  }
  out << "]\n";
}

int Fail(const kv::Status& status) {
  std::cerr << status.ToString() << "\n";
  return 1;
}

int Main(int count, char** arguments) {
  const auto options = Parse(count, arguments);
  if (!options) {
    std::cerr << "engine_bench: unknown or incomplete arguments; see the top of its source\n";
    return 2;
  }
  auto file = GgufFile::Open(options->model);
  if (!file.ok()) return Fail(file.status());
  auto model = LlamaModel::Load(*file.value());
  if (!model.ok()) return Fail(model.status());
  const PageLayout layout = PageLayout::For(model.value().shape, 32);
  const uint32_t block_count = (kPromptTokens + kDecodeTokens) / layout.block_tokens;
  KvPool pool(layout, block_count);
  auto backend = CreateCpuBackend(model.value(), pool, options->backend);
  if (!backend.ok()) return Fail(backend.status());

  std::vector<BlockIndex> blocks;
  for (uint32_t i = 0; i < block_count; ++i) blocks.push_back(*pool.Allocate());
  EngineRun run(*backend.value(), blocks);
  for (int round = 0; round < options->rounds; ++round) run.Round();
  const std::vector<Figure> figures = {{"engine.prefill", run.prefill(), options->baseline_prefill},
                                       {"engine.decode", run.decode(), options->baseline_decode}};
  Print(std::cout, figures);
  if (!options->json.empty()) {
    std::ofstream json(options->json);
    Print(json, figures);
    if (!json.flush()) {
      std::cerr << "cannot write " << options->json << "\n";
      return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace cairn::engine

int main(int count, char** arguments) { return cairn::engine::Main(count, arguments); }
