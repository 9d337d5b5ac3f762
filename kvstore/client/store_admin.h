// What operators ask of a store: its namespaces, blocks, targets, scrub and repair.
//
// Loop thread only. Implemented by a node; a remote client asks over its connection.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kvstore/client/block_store.h"
#include "kvstore/client/store_stats.h"

namespace cairn::kv {

struct SpaceInfo {
  NamespaceId id;
  NamespaceOptions options;  // With an empty token.
  bool has_token = false;
  uint64_t stored_bytes = 0;  // Payload of its stripes, expired ones not yet removed included.
  uint64_t kept_bytes = 0;    // Of these, under a keep_until in the future.
  uint64_t stripes = 0;
};

struct TargetInfo {
  enum class State : uint8_t { kServing, kLost, kRepairing };
  uint32_t place = 0;   // 0..targets-1.
  TargetId id;
  std::string label;    // Its folder or device.
  State state = State::kServing;
  std::string reason;   // Why it is lost.
  uint64_t capacity_bytes = 0;
  uint64_t free_bytes = 0;
  uint64_t live_bytes = 0;
  uint64_t shards = 0;
  uint64_t reads = 0;
  uint64_t bytes_read = 0;
  uint64_t bytes_appended = 0;
  uint64_t bytes_moved = 0;
  uint64_t corrupt_reads = 0;
};

struct BlockInfo {
  BlockId id;
  uint32_t size = 0;
  StripeId stripe;
  RunId run;
  UnixMillis expires_at;
  UnixMillis last_access;
  UnixMillis keep_until;  // 0: none.
};

// Blocks in index order; pass `next` as the cursor of the following call. Empty: the end. Blocks
// put or removed meanwhile may be in it or not; all others are listed once.
struct BlockPage {
  std::vector<BlockInfo> blocks;
  std::string next;
};

struct ShardInfo {
  ShardIndex index;
  TargetId target;
  uint32_t place = 0;      // Of the target; UINT32_MAX when it is another node's, or gone.
  bool present = false;    // The target says that it has it.
  Status verified;         // Of its record; ok also when verification was not asked for. Where it
                           // is not present: why its target did not say.
};

struct BlockDetails {
  BlockInfo block;
  Manifest manifest;
  std::vector<ShardInfo> shards;
  std::vector<uint32_t> index_places;  // Of the targets whose index replica lists the stripe.
};

// Of a scrub or a repair.
struct MaintenanceStatus {
  bool running = false;
  uint64_t bytes_per_second = 0;  // The limit; 0: none.
  uint64_t bytes_done = 0;        // Of this pass.
  uint64_t bytes_left = 0;        // An estimate.
  uint64_t shards_checked = 0;    // A scrub reads them whole, a repair asks whether they are there.
  uint64_t shards_damaged = 0;
  uint64_t shards_repaired = 0;
  uint64_t shards_failed = 0;     // Could not be repaired: too much of the stripe is gone.
  uint64_t passes = 0;            // Completed since the store started.
  uint64_t seconds_left = 0;      // An estimate, from the time that the stripes so far have taken.
};

class StoreAdmin {
 public:
  virtual ~StoreAdmin() = default;

  virtual Task<Result<StoreStats>> Stats() = 0;
  virtual Task<Result<std::vector<TargetInfo>>> ListTargets() = 0;
  virtual Task<Result<std::vector<SpaceInfo>>> ListSpaces() = 0;

  // kConflict when a namespace of that name exists, whatever its options.
  virtual Task<Result<NamespaceId>> CreateSpace(NamespaceOptions options) = 0;
  // From then on nothing of it can be read, also when the name is created again; its space returns
  // soon. kNotFound when there is none.
  virtual Task<Status> DeleteSpace(std::string name) = 0;

  // At most `limit` blocks (1..10,000) from `cursor` on ("" to begin).
  virtual Task<Result<BlockPage>> ListBlocks(NamespaceId space, std::string cursor,
                                             uint32_t limit) = 0;
  // Block `at` of the chain. `verify` reads and checks every shard's record.
  virtual Task<Result<BlockDetails>> Inspect(NamespaceId space, std::vector<BlockId> chain,
                                             uint32_t at, bool verify) = 0;

  // One pass over every record, at most so fast (0: no limit). kConflict when one is running.
  virtual Task<Status> StartScrub(uint64_t bytes_per_second) = 0;
  virtual Task<Status> StopScrub() = 0;
  virtual Task<Result<MaintenanceStatus>> ScrubStatus() = 0;

  // Restores what stripes lost with their targets, hottest first. kConflict when one is running.
  virtual Task<Status> StartRepair(uint64_t bytes_per_second) = 0;
  virtual Task<Status> StopRepair() = 0;
  virtual Task<Result<MaintenanceStatus>> RepairStatus() = 0;
};

}  // namespace cairn::kv
