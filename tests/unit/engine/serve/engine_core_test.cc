// The engine core on a model whose text shows every wrong KV byte, and a store that misbehaves.
#include "engine/serve/engine_core.h"

#include <gtest/gtest.h>

#include "kvstore/base/random.h"
#include "tests/support/fake_model.h"

namespace cairn::engine {
namespace {

using testing::FakeBackend;
using testing::FakeCodec;
using testing::FakePrefixStore;

class FrozenClock final : public kv::Clock {
 public:
  kv::Instant Now() const override { return {++ticks_ * 1'000'000}; }
  kv::UnixMillis UnixNow() const override { return {0}; }
  kv::Task<void> SleepUntil(kv::Instant, kv::Event*) override { co_return; }

 private:
  mutable int64_t ticks_ = 0;
};

struct Answer final : GenerateListener {
  void OnStart(const Usage&) override { ++starts; }
  void OnText(std::string_view piece) override { text += piece; }
  void OnEnd(FinishReason why, const Usage& final_usage, const kv::Status&) override {
    ++ends;
    reason = why;
    usage = final_usage;
  }
  std::string text;
  int starts = 0;
  int ends = 0;
  FinishReason reason = FinishReason::kError;
  Usage usage;
};

// One core with its parts; the verbs of the stories below.
class Bench {
 public:
  static constexpr uint32_t kContext = 256;
  explicit Bench(uint32_t pool_blocks = 64)
      : backend(16, pool_blocks, kContext), store(backend.pool()) {
    Restart();
  }
  ~Bench() {
    core_->CancelAll();
    Run();
  }

  // A new core, as after a restart of the process: only the store remembers.
  void Restart(EngineCoreOptions options = {}) {
    if (core_) Run();
    options.context_tokens_max = kContext;
    options.post = [this](std::function<void()> call) { posted_.push_back(std::move(call)); };
    const EngineCore::Parts parts{backend, codec_, store, clock_};
    core_ = std::make_unique<EngineCore>(parts, options);
  }

  std::shared_ptr<Answer> Start(const std::string& prompt, uint32_t tokens_max = 40,
                                std::vector<std::string> stop = {}) {
    auto answer = std::make_shared<Answer>();
    const ChatMessage message{"user", prompt};
    core_->Add({.id = {++ids_},
                .prompt = codec_.Render({&message, 1}).value(),
                .completion_tokens_max = tokens_max,
                .sampling = {.temperature = 0, .top_p = 1, .seed = {}},
                .stop = std::move(stop),
                .listener = answer});
    return answer;
  }
  void RunPosted() {
    for (std::function<void()>& call : std::exchange(posted_, {})) call();
  }
  void Run() {
    while (true) {
      store.Release();
      RunPosted();
      if (!core_->Step() && posted_.empty()) return;
    }
  }
  std::shared_ptr<Answer> Ask(const std::string& prompt, uint32_t tokens_max = 40) {
    auto answer = Start(prompt, tokens_max);
    Run();
    return answer;
  }
  RequestId last_id() const { return {ids_}; }
  EngineCore& core() { return *core_; }

  FakeBackend backend;
  FakePrefixStore store;

 private:
  FakeCodec codec_;
  FrozenClock clock_;
  uint64_t ids_ = 0;
  std::vector<std::function<void()>> posted_;
  std::unique_ptr<EngineCore> core_;
};

std::string Prompt(size_t length, uint64_t seed = 1) {
  kv::Random random(seed);
  std::string text;
  while (text.size() < length) text += static_cast<char>(' ' + random.Below(95));
  return text;
}

TEST(EngineCore, WarmAnswersEqualColdOnesAndReportWhatWasCached) {
  Bench bench;
  const auto cold = bench.Ask(Prompt(100));
  EXPECT_EQ(cold->usage.cached_tokens, 0u);
  bench.Restart();
  const uint64_t computed_before = bench.backend.tokens_computed;
  const auto warm = bench.Ask(Prompt(100));
  EXPECT_EQ(warm->text, cold->text);
  EXPECT_FALSE(warm->text.empty());
  EXPECT_EQ(warm->usage.cached_tokens, 96u);  // 6 blocks of 16; the last 4 tokens are computed.
  EXPECT_EQ(bench.backend.tokens_computed - computed_before,
            4 + warm->usage.completion_tokens - 1);
}

TEST(EngineCore, PromptThatEndsOnABlockComputesAtLeastItsLastToken) {
  Bench bench;
  const auto cold = bench.Ask(Prompt(96));
  const auto warm = bench.Ask(Prompt(96));
  EXPECT_EQ(warm->usage.cached_tokens, 80u);
  EXPECT_EQ(warm->text, cold->text);
}

TEST(EngineCore, GeneratedTokensAreSavedToo) {
  Bench bench;
  std::string prompt = Prompt(20, 3);
  const auto first = bench.Ask(prompt, 60);
  ASSERT_GT(first->text.size(), 20u);
  const auto next = bench.Ask(prompt + first->text);
  EXPECT_EQ(next->usage.cached_tokens, (20 + first->text.size() - 1) / 16 * 16);
}

TEST(EngineCore, FailedLoadIsRecomputedFromTheFirstBadBlock) {
  Bench bench;
  const auto cold = bench.Ask(Prompt(100));
  bench.store.fail_loads_after = 2;
  const auto warm = bench.Ask(Prompt(100));
  EXPECT_EQ(warm->text, cold->text);
  EXPECT_EQ(warm->usage.cached_tokens, 32u);
  EXPECT_EQ(bench.core().stats().block_loads_failed, 4u);
}

TEST(EngineCore, FailedSavesCostNothingButTheCache) {
  Bench bench;
  bench.store.fail_saves = true;
  const auto cold = bench.Ask(Prompt(100));
  const auto again = bench.Ask(Prompt(100));
  EXPECT_EQ(again->text, cold->text);
  EXPECT_EQ(again->usage.cached_tokens, 0u);
  EXPECT_GT(bench.core().stats().block_saves_failed, 0u);
}

TEST(EngineCore, TheNextQuestionSharesBlocksThatAreStillBeingSaved) {
  Bench bench;
  const auto first = bench.Start(Prompt(100));
  EXPECT_FALSE(bench.core().Step());  // The lookup has found nothing.
  bench.store.hold = true;
  bench.RunPosted();
  while (first->ends == 0) ASSERT_TRUE(bench.core().Step());
  ASSERT_EQ(bench.store.size(), 0u);

  bench.store.hold = false;
  const uint64_t computed_before = bench.backend.tokens_computed;
  const auto next = bench.Start(Prompt(100));
  EXPECT_FALSE(bench.core().Step());
  bench.RunPosted();
  while (next->ends == 0) ASSERT_TRUE(bench.core().Step());
  EXPECT_EQ(next->text, first->text);
  EXPECT_EQ(next->usage.cached_tokens, 96u);
  EXPECT_EQ(bench.backend.tokens_computed - computed_before,
            4 + next->usage.completion_tokens - 1);
  bench.Run();
  EXPECT_EQ(bench.backend.pool().free_count(), bench.backend.pool().block_count());
}

TEST(EngineCore, WhatIsBeingSavedFollowsWhatWasLoaded) {
  Bench bench;
  const std::string prompt = Prompt(100);
  bench.Ask(prompt.substr(0, 50), 1);  // The store has the first 3 blocks.
  const auto first = bench.Start(prompt);
  EXPECT_FALSE(bench.core().Step());
  bench.RunPosted();  // The load is answered at once, too.
  bench.store.hold = true;
  bench.RunPosted();
  while (first->ends == 0) ASSERT_TRUE(bench.core().Step());
  EXPECT_EQ(first->usage.cached_tokens, 48u);
  bench.store.hold = false;
  for (const uint32_t readable : {3u, 2u}) {  // What cannot be read ends the prefix.
    bench.store.fail_loads_after = readable;
    const auto next = bench.Start(prompt);
    EXPECT_FALSE(bench.core().Step());
    bench.RunPosted();
    bench.RunPosted();
    bench.store.hold = true;
    while (next->ends == 0) ASSERT_TRUE(bench.core().Step());
    bench.store.hold = false;
    EXPECT_EQ(next->text, first->text);
    EXPECT_EQ(next->usage.cached_tokens, readable == 3 ? 96u : 32u);
  }
}

TEST(EngineCore, SlowHitIsComputedInstead) {
  Bench bench;
  bench.backend.step_tokens = 64;
  const auto cold = bench.Ask(Prompt(200));  // Also measures prefill: 1 ms a step.
  bench.store.load_estimate = kv::Seconds(100);
  const auto warm = bench.Ask(Prompt(200));
  EXPECT_EQ(warm->text, cold->text);
  EXPECT_EQ(warm->usage.cached_tokens, 0u);
  bench.store.load_estimate = kv::Nanos{1};
  EXPECT_EQ(bench.Ask(Prompt(200))->usage.cached_tokens, 192u);
}

TEST(EngineCore, ManySequencesAtOnceGiveTheSameTextsAsAlone) {
  std::vector<std::string> alone;
  for (uint64_t i = 0; i < 12; ++i) {
    Bench bench;
    alone.push_back(bench.Ask(Prompt(10 + 13 * i, i))->text);
  }
  Bench bench;
  std::vector<std::shared_ptr<Answer>> answers;
  for (uint64_t i = 0; i < 12; ++i) answers.push_back(bench.Start(Prompt(10 + 13 * i, i)));
  bench.Run();
  for (size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(answers[i]->text, alone[i]) << i;
    EXPECT_EQ(answers[i]->ends, 1);
  }
}

// 20 blocks for sequences of up to 16: they can only run by taking turns.
TEST(EngineCore, PreemptionChangesNoTextAndLosesNobody) {
  std::vector<std::string> alone;
  for (uint64_t i = 0; i < 6; ++i) {
    Bench bench;
    alone.push_back(bench.Ask(Prompt(60, i), 190)->text);
  }
  Bench bench(20);
  EngineCoreOptions options;
  options.grow_tokens = 1;
  bench.Restart(options);
  std::vector<std::shared_ptr<Answer>> answers;
  for (uint64_t i = 0; i < 6; ++i) answers.push_back(bench.Start(Prompt(60, i), 190));
  bench.Run();
  for (size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(answers[i]->text, alone[i]) << i;
    EXPECT_EQ(answers[i]->starts, 1);
    EXPECT_EQ(answers[i]->usage.cached_tokens, 0u);
  }
}

TEST(EngineCore, CancelWhileTheStoreWritesWaitsForTheStore) {
  Bench bench;
  bench.Ask(Prompt(100));
  bench.store.hold = true;
  const auto answer = bench.Start(Prompt(100));
  EXPECT_FALSE(bench.core().Step());  // The lookup is in flight.
  bench.core().Cancel(bench.last_id());
  EXPECT_EQ(answer->ends, 0);
  bench.Run();
  EXPECT_EQ(answer->ends, 1);
  EXPECT_EQ(answer->reason, FinishReason::kCancelled);
  EXPECT_EQ(bench.backend.pool().free_count(), bench.backend.pool().block_count());
}

TEST(EngineCore, EndsByLengthStopTextAndEndToken) {
  Bench bench;
  const auto length = bench.Ask(Prompt(30), 5);
  EXPECT_EQ(length->reason, FinishReason::kLength);
  EXPECT_EQ(length->usage.completion_tokens, 5u);
  const auto stopped = bench.Start(Prompt(30), 40, {length->text.substr(2, 2)});
  bench.Run();
  EXPECT_EQ(stopped->reason, FinishReason::kStop);
  EXPECT_EQ(stopped->text, length->text.substr(0, 2));
  const auto ended = bench.Ask(Prompt(30), 220);
  EXPECT_EQ(ended->reason, FinishReason::kStop);
  EXPECT_LT(ended->usage.completion_tokens, 220u);
}

TEST(EngineCore, AllBlocksComeBackWhateverHappens) {
  Bench bench(24);
  kv::Random random(5);
  for (int round = 0; round < 200; ++round) {
    bench.store.hold = random.Chance(1, 2);
    bench.store.fail_saves = random.Chance(1, 4);
    bench.store.fail_loads_after =
        random.Chance(1, 3) ? static_cast<uint32_t>(random.Below(4)) : UINT32_MAX;
    bench.Start(Prompt(1 + random.Below(120), random.Below(8)),
                static_cast<uint32_t>(1 + random.Below(60)));
    if (random.Chance(1, 3)) bench.core().Cancel(bench.last_id());
    for (uint64_t steps = random.Below(5); steps > 0; --steps) bench.core().Step();
    if (random.Chance(1, 2)) bench.store.Release();
    bench.RunPosted();
  }
  bench.Run();
  EXPECT_TRUE(bench.core().idle());
  EXPECT_EQ(bench.backend.pool().free_count(), bench.backend.pool().block_count());
}

}  // namespace
}  // namespace cairn::engine
