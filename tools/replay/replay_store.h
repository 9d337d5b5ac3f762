// The store that a replay drives: one made for it in a folder, or one that is running.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kvstore/base/log.h"
#include "kvstore/client/client.h"
#include "kvstore/client/store_stats.h"
#include "kvstore/os/poller.h"

namespace cairn::tools {

struct FolderStoreOptions {
  std::string data_dir;
  uint64_t capacity_bytes = 0;
  uint32_t targets = 12;
  kv::PollerEngine poller = kv::PollerEngine::kAuto;
};

class ReplayStore {
 public:
  // `log` must outlive the result. kInvalid: the folder holds a store already.
  static kv::Result<std::unique_ptr<ReplayStore>> InFolder(const FolderStoreOptions& options,
                                                           kv::Log& log);
  // A namespace of its own in the store at "unix:PATH" or "HOST:PORT"; Finish deletes it.
  static kv::Result<std::unique_ptr<ReplayStore>> At(const std::string& address, kv::Log& log);
  virtual ~ReplayStore() = default;

  virtual kv::Client& client() = 0;
  virtual kv::NamespaceId space() const = 0;
  // The trace's clock, in milliseconds. A running store keeps its own calendar.
  virtual void SetTime(int64_t trace_ms) = 0;
  // Counters since the replay began.
  virtual kv::Result<kv::StoreStats> Stats() = 0;
  virtual kv::Status Finish() = 0;
};

}  // namespace cairn::tools
