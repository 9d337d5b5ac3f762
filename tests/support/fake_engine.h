// An engine without a model, for tests of what stands in front of one: the last message of a
// request says how it goes.
//
// "overload"    Submit fails: kOverloaded.
// "too long"    Submit fails: kInvalid, over the context.
// "unavailable" Submit fails: kUnavailable.
// "fail early"  OnEnd(kError) before OnStart.
// "fail late"   OnStart, a text, OnEnd(kError).
// "silent"      Nothing until cancelled.
// "endless"     Text until cancelled.
// "hold ..."    Goes on as any other text once Release is called.
// Anything else is echoed word by word. A token is a word; a prompt that was seen before is cached
// but for its last token.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "engine/api/engine.h"

namespace cairn::testing {

class FakeEngine final : public engine::Engine {
 public:
  static constexpr uint32_t kContextTokens = 8192;

  FakeEngine();
  ~FakeEngine() override;  // Cancels what runs.

  kv::Result<engine::RequestId> Submit(engine::GenerateRequest request,
                                       std::shared_ptr<engine::GenerateListener> listener) override;
  void Cancel(engine::RequestId id) override;
  engine::EngineInfo info() const override;
  engine::EngineStats stats() const override;

  // For the test.
  void Release();  // Lets all held requests go on, those to come too.
  void AwaitCancelled(uint64_t count);
  void AwaitRunning(uint64_t count);
  engine::GenerateRequest last_request() const;

 private:
  struct Job;

  void Run();
  // One call to the listener. False when that was the last.
  bool Step(Job& job);
  void End(Job& job, engine::FinishReason reason, kv::Status status);
  engine::Usage CountPrompt(const engine::GenerateRequest& request);

  mutable std::mutex mutex_;  // Protects all below.
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Job>> jobs_;
  std::set<std::string> prompts_seen_;
  engine::GenerateRequest last_request_;
  engine::EngineStats stats_;
  uint64_t next_id_ = 1;
  bool released_ = false;
  bool stopping_ = false;

  std::thread thread_;  // Last: it uses all above.
};

}  // namespace cairn::testing
