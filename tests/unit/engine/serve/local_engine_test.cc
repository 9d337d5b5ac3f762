// The thread-safe engine: refusals, concurrency, cancellation, stopping.
#include "engine/serve/local_engine.h"

#include <gtest/gtest.h>

#include <future>

#include "tests/support/fake_model.h"
#include "tests/support/status_matchers.h"

namespace cairn::engine {
namespace {

using testing::HasCode;

class StillClock final : public kv::Clock {
 public:
  kv::Instant Now() const override { return {0}; }
  kv::UnixMillis UnixNow() const override { return {0}; }
  kv::Task<void> SleepUntil(kv::Instant, kv::Event*) override { co_return; }
};

class Listener final : public GenerateListener {
 public:
  void OnStart(const Usage&) override {}
  void OnText(std::string_view piece) override { text_ += piece; }
  void OnEnd(FinishReason reason, const Usage&, const kv::Status&) override {
    reason_ = reason;
    ended_.set_value();
  }
  std::string Wait() {
    ended_.get_future().wait();
    return text_;
  }
  FinishReason reason() const { return reason_; }

 private:
  std::string text_;
  FinishReason reason_ = FinishReason::kError;
  std::promise<void> ended_;
};

class LocalEngineTest : public ::testing::Test {
 protected:
  std::unique_ptr<LocalEngine> Open(LocalEngineOptions options = {}) {
    options.model_name = "fake";
    return std::make_unique<LocalEngine>(LocalEngine::Parts{backend_, codec_, store_, clock_},
                                         options);
  }
  static GenerateRequest Ask(std::string text) {
    return {.messages = {{"user", std::move(text)}},
            .sampling = {.temperature = 0, .top_p = 1, .seed = {}},
            .completion_tokens_max = 30,
            .stop = {}};
  }

  testing::FakeBackend backend_{16, 64, 256};
  testing::FakeCodec codec_;
  testing::FakePrefixStore store_{backend_.pool()};
  StillClock clock_;
};

TEST_F(LocalEngineTest, AnswersManyAtOnceAndTheSameEachTime) {
  const auto engine = Open();
  const auto alone = std::make_shared<Listener>();
  ASSERT_TRUE(engine->Submit(Ask("hello there"), alone).ok());
  const std::string text = alone->Wait();
  EXPECT_FALSE(text.empty());
  std::vector<std::shared_ptr<Listener>> listeners;
  for (int i = 0; i < 40; ++i) {
    listeners.push_back(std::make_shared<Listener>());
    ASSERT_TRUE(engine->Submit(Ask("hello there"), listeners.back()).ok());
  }
  for (const auto& listener : listeners) EXPECT_EQ(listener->Wait(), text);
}

TEST_F(LocalEngineTest, RefusesWhatItCannotDoWithWordsThatHelp) {
  const auto engine = Open();
  const auto listener = std::make_shared<Listener>();
  const auto refused = [&](GenerateRequest request) {
    const auto result = engine->Submit(std::move(request), listener);
    EXPECT_THAT(result, HasCode(kv::Code::kInvalid));
    return result.status().message();
  };
  EXPECT_NE(refused(Ask(std::string(256, 'x'))).find("256"), std::string::npos);
  EXPECT_NE(refused({}).find("messages"), std::string::npos);
  GenerateRequest hot = Ask("x");
  hot.sampling.temperature = 3;
  EXPECT_NE(refused(hot).find("temperature"), std::string::npos);
  GenerateRequest role = Ask("x");
  role.messages[0].role = "forbidden";
  EXPECT_NE(refused(role).find("role"), std::string::npos);
}

TEST_F(LocalEngineTest, FullQueueIsOverloadedAndStoppingCancels) {
  LocalEngineOptions options;
  options.requests_max = 2;
  store_.hold = true;  // Lookups of prompts longer than a block never answer by themselves.
  auto engine = Open(options);
  const auto first = std::make_shared<Listener>();
  const auto second = std::make_shared<Listener>();
  const std::string prompt(64, 'p');
  ASSERT_TRUE(engine->Submit(Ask(prompt), first).ok());
  ASSERT_TRUE(engine->Submit(Ask(prompt), second).ok());
  EXPECT_THAT(engine->Submit(Ask("x"), std::make_shared<Listener>()),
              HasCode(kv::Code::kOverloaded));
  // Stopping waits for the store's answers, which another thread gives.
  std::promise<void> stopped;
  std::thread store_thread([&] {
    std::future<void> done = stopped.get_future();
    while (done.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
      store_.Release();
    }
  });
  engine.reset();
  stopped.set_value();
  store_thread.join();
  EXPECT_EQ(first->reason(), FinishReason::kCancelled);
  EXPECT_EQ(second->reason(), FinishReason::kCancelled);
}

}  // namespace
}  // namespace cairn::engine
