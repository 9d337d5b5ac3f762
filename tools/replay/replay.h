// A trace driven through a real store in a folder, and what was measured on the way.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "kvstore/base/log.h"
#include "kvstore/client/store_stats.h"
#include "kvstore/os/poller.h"
#include "tools/cachesim/store_policy.h"
#include "tools/replay/store_driver.h"
#include "tools/trace/trace_source.h"

namespace cairn::tools {

struct ReplayOptions {
  std::string data_dir = {};  // Must hold no store yet: what is left from before would be hit.
  std::string connect = {};   // Instead: the address of a running store, "unix:PATH", "HOST:PORT".
  uint64_t capacity_bytes = 0;
  double bytes_per_token = 0;
  uint64_t requests_max = 0;  // 0 = all.
  double read_share = 1;  // Of the requests: those whose hits are read and verified, (0, 1].
  bool answers = false;       // Store answers too. No trace names them, so they only take room.
  bool predict = false;
  bool predict_only = false;  // No store: neither data_dir nor connect.
  kv::PollerEngine poller = kv::PollerEngine::kAuto;
  std::function<void(uint64_t requests)> progress = {};
};

struct ReplayReport {
  bool measured = true;  // Otherwise only requests, prompt_tokens, block_bytes and predicted hold.
  uint64_t requests = 0;
  uint64_t prompt_tokens = 0;
  uint64_t hit_tokens = 0;
  uint64_t block_bytes = 0;
  double seconds = 0;
  DriverCounts driver = {};
  kv::StoreStats store = {};
  struct Predicted {
    double hit_rate = 0;
    double write_amplification = 1;
    double lru_hit_rate = 0;
    double unbounded_hit_rate = 0;
    SpaceUse space = {};  // At the end.
  };
  std::optional<Predicted> predicted = {};

  double HitRate() const;
  double WriteAmplification() const;
};

// kCorrupt: a wrong byte came back; the message says where. kInvalid: options or folder.
kv::Result<ReplayReport> Replay(TraceSource& source, const ReplayOptions& options, kv::Log& log);

}  // namespace cairn::tools
