// A model whose answers depend on all KV it should have: wrong or missing KV changes the text.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine/compute/backend.h"
#include "engine/serve/text_codec.h"
#include "engine/transfer/prefix_store.h"
#include "kvstore/base/checksum.h"

namespace cairn::testing {

inline constexpr uint32_t kFakeVocab = 96;  // Token t < 95 is the character ' ' + t; 95 ends.
inline constexpr engine::TokenId kFakeEnd = 95;

// KV of position p: a hash of the KV of position p - 1 and of the token. Logits: one-hot by it.
class FakeBackend final : public engine::Backend {
 public:
  FakeBackend(uint32_t block_tokens, uint32_t block_count, uint32_t context_max)
      : layout_{.layers = 1, .kv_heads = 1, .head_dim = 4, .block_tokens = block_tokens},
        pool_(layout_, block_count) {
    shape_.vocab = kFakeVocab;
    shape_.context_max = context_max;
  }

  void Step(std::span<const engine::SequenceStep> steps, std::span<float> logits) override {
    ++steps_computed;
    size_t row = 0;
    for (const engine::SequenceStep& step : steps) {
      uint64_t state = step.position == 0 ? 1 : Load(step, step.position - 1);
      for (uint32_t i = 0; i < step.tokens.size(); ++i) {
        const uint64_t mixed[2] = {state, step.tokens[i]};
        state = kv::Checksum({reinterpret_cast<const uint8_t*>(mixed), sizeof(mixed)});
        std::memcpy(Slot(step, step.position + i), &state, sizeof(state));
        ++tokens_computed;
      }
      if (!step.wants_logits) continue;
      float* out = logits.data() + kFakeVocab * row++;
      std::fill(out, out + kFakeVocab, 0.0f);
      // The end comes about once in 64 tokens.
      out[state % 64 == 63 ? kFakeEnd : state % 95] = 1.0f;
    }
  }

  const engine::ModelShape& shape() const override { return shape_; }
  engine::KvPool& pool() override { return pool_; }
  uint32_t step_tokens_max() const override { return step_tokens; }

  uint32_t step_tokens = 24;
  uint64_t steps_computed = 0;
  uint64_t tokens_computed = 0;

 private:
  uint8_t* Slot(const engine::SequenceStep& step, uint32_t position) {
    const engine::BlockIndex block = step.blocks[position / layout_.block_tokens];
    return pool_.bytes(block).data() + sizeof(uint64_t) * (position % layout_.block_tokens);
  }
  uint64_t Load(const engine::SequenceStep& step, uint32_t position) {
    uint64_t state = 0;
    std::memcpy(&state, Slot(step, position), sizeof(state));
    return state;
  }

  engine::ModelShape shape_;
  const engine::PageLayout layout_;
  engine::KvPool pool_;
};

// The prompt is the messages' text, one token a character.
class FakeCodec final : public engine::TextCodec {
 public:
  kv::Result<std::vector<engine::TokenId>> Render(
      std::span<const engine::ChatMessage> messages) const override {
    std::vector<engine::TokenId> tokens;
    for (const engine::ChatMessage& message : messages) {
      if (message.role == "forbidden") return kv::Status(kv::Code::kInvalid, "unknown role");
      for (const char c : message.content) tokens.push_back(static_cast<unsigned char>(c) - ' ');
    }
    return tokens;
  }
  std::unique_ptr<engine::TextStream> NewStream() const override {
    return std::make_unique<Stream>();
  }
  bool EndsAnswer(engine::TokenId token) const override { return token == kFakeEnd; }

 private:
  class Stream final : public engine::TextStream {
    std::string Add(engine::TokenId token) override {
      return std::string(1, static_cast<char>(' ' + token));
    }
    std::string Finish() override { return {}; }
  };
};

// A store in memory. Answers at once, or when told; can lose, fail and damage.
class FakePrefixStore final : public engine::PrefixStore {
 public:
  explicit FakePrefixStore(engine::KvPool& pool) : pool_(pool) {}

  void Lookup(std::vector<kv::BlockId> chain,
              std::function<void(engine::PrefixHit)> done) override {
    Answer([this, chain = std::move(chain), done = std::move(done)] {
      uint32_t blocks = 0;
      while (blocks < chain.size() && blocks_.contains(chain[blocks])) ++blocks;
      done({blocks, load_estimate});
    });
  }
  void Load(std::vector<kv::BlockId> chain, std::vector<engine::BlockIndex> into, kv::Instant,
            std::function<void(uint32_t)> done) override {
    Answer([this, chain = std::move(chain), into = std::move(into), done = std::move(done)] {
      uint32_t loaded = 0;
      for (; loaded < into.size(); ++loaded) {
        const auto found = blocks_.find(chain[loaded]);
        kv::MutableByteSpan target = pool_.bytes(into[loaded]);
        if (found == blocks_.end() || loaded == fail_loads_after) {
          std::memset(target.data(), 0xee, target.size());  // A failed read leaves rubbish.
          break;
        }
        std::memcpy(target.data(), found->second.data(), target.size());
      }
      done(loaded);
    });
  }
  void Save(std::vector<kv::BlockId> chain, uint32_t first, std::vector<engine::BlockIndex> blocks,
            std::function<void(uint32_t)> done) override {
    Answer([this, chain = std::move(chain), first, blocks = std::move(blocks),
            done = std::move(done)] {
      if (fail_saves) return done(0);
      for (size_t i = 0; i < blocks.size(); ++i) {
        const kv::ByteSpan bytes = pool_.bytes(blocks[i]);
        blocks_.emplace(chain[first + i], std::vector<uint8_t>(bytes.begin(), bytes.end()));
      }
      done(static_cast<uint32_t>(blocks.size()));
    });
  }

  // Lets calls that wait go on, in order. With `hold` unset they never wait.
  // Any thread may call it.
  void Release() {
    std::vector<std::function<void()>> calls;
    {
      const std::lock_guard lock(mutex_);
      calls.swap(held_);
    }
    for (std::function<void()>& call : calls) call();
  }
  size_t size() const { return blocks_.size(); }
  void Forget() { blocks_.clear(); }

  bool hold = false;
  bool fail_saves = false;
  uint32_t fail_loads_after = UINT32_MAX;
  kv::Nanos load_estimate;

 private:
  void Answer(std::function<void()> call) {
    if (!hold) return call();
    const std::lock_guard lock(mutex_);
    held_.push_back(std::move(call));
  }

  engine::KvPool& pool_;
  std::map<kv::BlockId, std::vector<uint8_t>> blocks_;
  std::mutex mutex_;
  std::vector<std::function<void()>> held_;  // Protected by mutex_.
};

}  // namespace cairn::testing
