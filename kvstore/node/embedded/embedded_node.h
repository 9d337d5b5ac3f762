// A whole store inside the caller's process: folders on a file system, served on a thread of its
// own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "kvstore/base/log.h"
#include "kvstore/client/client.h"
#include "kvstore/client/store_stats.h"
#include "kvstore/node/node.h"
#include "kvstore/os/poller.h"

namespace cairn::kv {

// Of target_bytes: as many segments as reclaim needs to choose from.
inline constexpr uint64_t kTargetSizeMin = 16 * kSegmentSizeMin;

struct EmbeddedOptions {
  std::string data_dir;
  uint32_t targets = 12;             // Files that stand for SSDs: each its own failure domain.
  uint64_t target_bytes = 1 * kGiB;  // Of targets made from now on; preallocated.
  PollerOptions poller;
  uint32_t worker_threads = 2;
  uint64_t metadata_cache_bytes = 32 * kMiB;  // RocksDB's, for all targets together.
  uint64_t metadata_memtable_bytes = 32 * kMiB;
  // Calendar time, for who replays another day; asked on the store's thread. Empty: the machine's.
  std::function<UnixMillis()> unix_now = {};
  NodeOptions node;  // segment_size: 0 chooses by target_bytes.
};

// What runs on the store's thread beside the store: a server for other processes, a meter.
class EmbeddedService {
 public:
  struct Parts {
    Poller& poller;
    Clock& clock;
    Node& node;
  };
  virtual ~EmbeddedService() = default;
  // On the store's thread, once the store serves; a failure fails EmbeddedNode::Start.
  virtual Status Start(const Parts& parts) = 0;
  // On the store's thread, once, if Start went well: afterwards `parts` is gone.
  virtual Task<void> Stop() = 0;
};

// The cluster that the node is part of.
class EmbeddedCluster {
 public:
  struct Parts {
    Poller& poller;
    Clock& clock;
    Random& random;
  };
  virtual ~EmbeddedCluster() = default;
  // On the store's thread, before the targets are opened. What it returns lives until Close.
  virtual Result<Surroundings*> Open(const Parts& parts) = 0;
  // On the store's thread, once: the node is gone, and `parts` goes next. Also after a failed Open.
  virtual void Close() = 0;
};

// Of a target that is made with segment_size 0.
uint64_t SegmentSizeFor(uint64_t target_bytes);

class EmbeddedNode {
 public:
  // Opens or creates everything and returns when the store serves. `log` must outlive the result.
  // kConflict: the folder is in use, or of another version. kNoSpace: no room for the targets.
  // kInvalid: not writable, or options that make no sense. The message is for people.
  // `service` and `cluster` must outlive the result, too; null: none.
  static Result<std::unique_ptr<EmbeddedNode>> Start(EmbeddedOptions options, Log& log,
                                                     EmbeddedService* service = nullptr,
                                                     EmbeddedCluster* cluster = nullptr);
  // Stops it, if Stop was not called.
  ~EmbeddedNode();

  // Thread-safe.
  Client& client();
  // Asks the store's thread and waits. Not from a callback.
  StoreStats stats();

  // Refuses later calls, waits for those in flight, writes what only memory knows. Once.
  Status Stop();

 private:
  class Core;
  explicit EmbeddedNode(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

}  // namespace cairn::kv
