// The embedded shape: store, engine and gateway in this process, from options to a running whole.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kvstore/base/log.h"
#include "kvstore/base/result.h"
#include "kvstore/base/units.h"
#include "kvstore/os/poller.h"

namespace cairn::tools {

struct StackOptions {
  std::string model_path;  // GGUF.
  std::string model_name;  // Empty: the file's name without its extension.

  std::string data_dir;
  uint64_t capacity_bytes = 12 * kv::kGiB;  // Of the store, raw, over all targets.
  uint32_t targets = 12;
  uint32_t ttl_seconds = 3 * 24 * 3600;     // Refreshed by hits.

  std::string host = "127.0.0.1";
  uint16_t port = 8080;      // 0: any free one.
  std::string bearer_token;  // Empty: none is asked.

  uint32_t threads = 2;              // Of the engine.
  uint32_t context_tokens_max = 0;   // 0: the model's.
  uint32_t block_tokens = 32;
  uint64_t kv_pool_bytes = 1 * kv::kGiB;  // Working memory of running sequences; touched as used.
  bool load_only_if_faster = true;
  kv::PollerEngine poller = kv::PollerEngine::kAuto;
};

// What `cairn check-model` and the start of the stack say of a model file.
struct ModelSummary {
  std::string architecture;
  uint64_t parameters = 0;
  uint32_t context_tokens_max = 0;
  uint64_t kv_bytes_per_token = 0;
};
kv::Result<ModelSummary> CheckModel(const std::string& path);

class Stack {
 public:
  // Returns when all of it serves. The message of a failure is for people. `log` must outlive it.
  static kv::Result<std::unique_ptr<Stack>> Start(StackOptions options, kv::Log& log);
  virtual ~Stack() = default;

  virtual uint16_t port() const = 0;
  // Ends what runs, gateway first, store last. Once. What the store said at the end.
  virtual kv::Status Stop() = 0;
};

}  // namespace cairn::tools
