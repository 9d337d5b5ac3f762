// Runs a model on the CPU backend for tests: owns the pool, hands out blocks, picks greedy tokens.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "engine/compute/cpu/cpu_backend.h"
#include "engine/gguf/gguf.h"
#include "engine/model/llama_model.h"
#include "kvstore/base/check.h"

namespace cairn::engine {

class ModelRunner {
 public:
  static constexpr uint32_t kBlockTokens = 32;

  // `file` outlives this.
  ModelRunner(const GgufFile& file, const CpuBackendOptions& options, uint32_t block_count = 64)
      : model_(LlamaModel::Load(file).value()),
        pool_(PageLayout::For(model_.shape, kBlockTokens), block_count),
        backend_(CreateCpuBackend(model_, pool_, options).value()) {}

  Backend& backend() { return *backend_; }
  KvPool& pool() { return pool_; }
  const ModelShape& shape() const { return model_.shape; }

  std::vector<BlockIndex> AllocateFor(size_t tokens) {
    std::vector<BlockIndex> blocks;
    for (size_t i = 0; i < tokens; i += kBlockTokens) blocks.push_back(pool_.Allocate().value());
    return blocks;
  }
  void Release(std::span<const BlockIndex> blocks) {
    for (const BlockIndex block : blocks) pool_.Release(block);
  }

  // One sequence, `chunk` tokens per step; the logits of the last token.
  std::vector<float> Logits(std::span<const TokenId> tokens, uint32_t position,
                            std::span<const BlockIndex> blocks, size_t chunk = 512) {
    std::vector<float> logits(shape().vocab);
    for (size_t i = 0; i < tokens.size(); i += chunk) {
      const bool is_last = i + chunk >= tokens.size();
      const SequenceStep step{.tokens = tokens.subspan(i, std::min(chunk, tokens.size() - i)),
                              .position = position + static_cast<uint32_t>(i),
                              .blocks = blocks,
                              .wants_logits = is_last};
      backend_->Step({&step, 1}, is_last ? std::span<float>(logits) : std::span<float>());
    }
    return logits;
  }

  std::vector<TokenId> Greedy(std::span<const TokenId> prompt, uint32_t count) {
    const std::vector<BlockIndex> blocks = AllocateFor(prompt.size() + count);
    std::vector<TokenId> answer;
    std::vector<float> logits = Logits(prompt, 0, blocks);
    while (true) {
      const auto best = std::ranges::max_element(logits);
      answer.push_back(static_cast<TokenId>(best - logits.begin()));
      if (answer.size() == count) break;
      const uint32_t position = static_cast<uint32_t>(prompt.size() + answer.size() - 1);
      logits = Logits(std::span(answer).last(1), position, blocks);
    }
    Release(blocks);
    return answer;
  }

 private:
  const LlamaModel model_;
  KvPool pool_;
  const std::unique_ptr<Backend> backend_;
};

}  // namespace cairn::engine
