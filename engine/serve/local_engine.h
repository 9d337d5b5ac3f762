// The engine in this process: one thread that runs the core, behind the thread-safe Engine face.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/api/engine.h"
#include "engine/compute/backend.h"
#include "engine/serve/text_codec.h"
#include "engine/transfer/prefix_store.h"
#include "kvstore/io/clock.h"

namespace cairn::engine {

class EngineCore;

struct LocalEngineOptions {
  std::string model_name;
  uint32_t context_tokens_max = 0;  // 0: the model's own. Lowered to what the KV pool can hold.
  uint32_t requests_max = 256;      // Running and waiting; more are refused with kOverloaded.
  uint32_t sequences_max = 16;      // Computed at the same time.
  bool load_only_if_faster = true;  // See EngineCoreOptions.
  uint64_t seed = 0;                // Where a request brings none.
};

class LocalEngine final : public Engine {
 public:
  // All must outlive the engine. The store must answer every call that it was given.
  struct Parts {
    Backend& backend;
    const TextCodec& codec;
    PrefixStore& store;
    const kv::Clock& clock;
  };
  LocalEngine(Parts parts, LocalEngineOptions options);

  // Cancels what runs, waits for the store, and joins the thread.
  ~LocalEngine() override;

  kv::Result<RequestId> Submit(GenerateRequest request,
                               std::shared_ptr<GenerateListener> listener) override;
  void Cancel(RequestId id) override;
  EngineInfo info() const override;
  EngineStats stats() const override;

 private:
  class Countdown;  // Wraps a listener, and counts the request as gone at its end.

  void Run();
  void Post(std::function<void()> call);
  enum class Wait { kNo, kForCalls, kForCallsOrStop };
  // Runs posted calls, after waiting as told. True once the engine is to stop.
  bool RunPosted(Wait wait);
  kv::Status Check(const GenerateRequest& request) const;

  const Parts parts_;
  const LocalEngineOptions options_;
  const uint32_t context_tokens_max_;

  std::atomic<uint64_t> next_id_{1};
  std::atomic<uint32_t> requests_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable posted_changed_;
  std::vector<std::function<void()>> posted_;  // Protected by mutex_.
  bool stopping_ = false;                      // Protected by mutex_.
  EngineStats stats_;                          // Protected by mutex_: as of the last step.
  EngineCore* core_ = nullptr;                 // The engine thread's.

  std::thread thread_;  // Last: it uses all of the above.
};

}  // namespace cairn::engine
