// The engine as its callers see it: chat messages in, text out as it is generated.
//
// Thread-safe. Listeners are called on the engine's own thread: they must not block, and must not
// call back into the engine except Cancel.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kvstore/base/result.h"

namespace cairn::engine {

struct ChatMessage {
  std::string role;     // "system", "user", "assistant": what the model's template knows.
  std::string content;  // Plain text. Control tokens in it stay text.
};

struct SamplingParams {
  float temperature = 1.0f;  // 0 is greedy. In [0, 2].
  float top_p = 1.0f;        // In (0, 1].
  std::optional<uint64_t> seed;  // Same seed, same text. None: a fresh one each time.
};

struct GenerateRequest {
  std::vector<ChatMessage> messages;
  SamplingParams sampling;
  std::optional<uint32_t> completion_tokens_max;  // None: up to the end of the context.
  std::vector<std::string> stop;                  // Up to 4 texts; none of them is emitted.
};

enum class FinishReason { kStop, kLength, kCancelled, kError };

struct Usage {
  uint32_t prompt_tokens = 0;
  uint32_t cached_tokens = 0;  // Of the prompt: not computed, but read from the store.
  uint32_t completion_tokens = 0;
};

struct RequestId {
  uint64_t value = 0;
  auto operator<=>(const RequestId&) const = default;
};

class GenerateListener {
 public:
  virtual ~GenerateListener() = default;

  // The prompt is computed and the first token is about to follow. Called once, before any text.
  virtual void OnStart(const Usage& usage) = 0;
  // Whole UTF-8 characters, never a part of one.
  virtual void OnText(std::string_view text) = 0;
  // Last call, exactly once. `status` says what went wrong when `reason` is kError.
  virtual void OnEnd(FinishReason reason, const Usage& usage, const kv::Status& status) = 0;
};

struct EngineInfo {
  std::string model_name;
  uint32_t context_tokens_max = 0;
  uint32_t block_tokens = 0;
  uint64_t parameters = 0;
};

// Totals since start.
struct EngineStats {
  uint64_t requests_started = 0;
  uint64_t requests_finished = 0;
  uint64_t requests_cancelled = 0;
  uint64_t requests_failed = 0;
  uint64_t prompt_tokens = 0;
  uint64_t cached_tokens = 0;
  uint64_t completion_tokens = 0;
  uint64_t requests_running = 0;  // Now.
  uint64_t requests_waiting = 0;  // Now.
  uint64_t blocks_loaded = 0;     // From the store.
  uint64_t blocks_saved = 0;      // To the store.
  uint64_t block_loads_failed = 0;  // Looked up as present, yet not read; recomputed instead.
  uint64_t block_saves_failed = 0;
};

class Engine {
 public:
  virtual ~Engine() = default;

  // Starts a generation; `listener` hears of it until OnEnd. Fails at once, without any call to the
  // listener: kInvalid (empty or unknown roles, prompt over the context: the message names both
  // lengths; bad sampling values), kOverloaded (the queue is full).
  virtual kv::Result<RequestId> Submit(GenerateRequest request,
                                       std::shared_ptr<GenerateListener> listener) = 0;

  // Ends it soon with OnEnd(kCancelled), unless it has ended. Unknown ids are ignored.
  virtual void Cancel(RequestId id) = 0;

  virtual EngineInfo info() const = 0;
  virtual EngineStats stats() const = 0;
};

}  // namespace cairn::engine
