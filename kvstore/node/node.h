// One storage node: its targets, and the store over them.
#pragma once

#include <memory>
#include <vector>

#include "kvstore/async/gate.h"
#include "kvstore/base/log.h"
#include "kvstore/client/striped_store.h"
#include "kvstore/client/window_store.h"
#include "kvstore/node/local_target.h"
#include "kvstore/node/reclaimer.h"
#include "kvstore/node/repairer.h"
#include "kvstore/node/scrubber.h"
#include "kvstore/node/surroundings.h"

namespace cairn::kv {

struct NodeOptions {
  uint64_t segment_size = kSegmentSizeDefault;  // Of targets that are formatted from now on.
  HomeOptions home;
  StripedStoreOptions store;  // shard_size_max is computed.
  ReclaimerOptions reclaim;
  RepairOptions repair;
  uint64_t window_bytes = 64 * kMiB;  // Of blocks that live in memory only (Medium::kMemory).
  // Of the capacity: what leases may protect from eviction at once. Beyond it lookups give none.
  uint32_t leased_percent_max = 25;
  // Of the capacity: what stripes under a keep_until may occupy. Beyond it promises are refused.
  uint32_t kept_percent_max = 50;
  // A kCached put older than this survives a power cut.
  Nanos checkpoint_interval = Seconds(5);
  Nanos maintenance_interval = Millis(250);
  Nanos orphan_age = Seconds(60);
};

// Where the targets of a node come from: folders of a file system, or simulated devices.
class MediaSource {
 public:
  virtual ~MediaSource() = default;
  virtual uint32_t count() const = 0;
  // Opens what is there in place `i`, or makes a blank one when nothing is.
  virtual Task<Result<TargetMedium>> Open(uint32_t i) = 0;
  // What is in place `i` cannot be used (`why`): sets it aside, never destroys it, and makes a
  // blank one.
  virtual Task<Result<TargetMedium>> Replace(uint32_t i, Status why) = 0;
  // The metadata in place `i` is damaged: an empty one, beside the same device.
  virtual Task<Result<TargetMedium>> ForgetMetadata(uint32_t i, Status why) = 0;
};

// Everything must outlive the node.
struct NodeParts {
  Loop& loop;
  Clock& clock;
  Workers& workers;
  Random& random;
  Log& log;
  MediaSource& media;
  Surroundings* surroundings = nullptr;  // Null: this node is all there is.
};

// Loop thread only.
class Node {
 public:
  // Opens all targets, joins the cluster if there is one, and publishes what a crash kept from
  // being published. Targets that cannot be read are left out, loudly. kConflict: a target of
  // another version; then nothing was formatted.
  static Task<Result<std::unique_ptr<Node>>> Open(NodeParts parts, NodeOptions options);
  ~Node();

  // With the namespaces in memory.
  BlockStore& store() { return *window_; }
  StripedStore& striped() { return *store_; }
  WindowStore& window() { return *window_; }
  Home& home() { return *home_; }
  // As of Surroundings.
  PayloadMemory* payload_memory() { return around_.payload_memory(); }
  // Counters, with those of the targets.
  StoreStats stats() const;
  const LocalTargets& targets() const { return targets_; }
  // Also those of other nodes.
  const TargetSet& all_targets() const { return around_.targets(); }
  // Of the media source, in its order: also those that are left out, and why.
  struct Place {
    LocalTarget* target = nullptr;  // Null: left out.
    Status why_lost = Status();
  };
  const std::vector<Place>& places() const { return places_; }
  UnixMillis UnixNow() const { return parts_.clock.UnixNow(); }
  Reclaimer& reclaimer() { return *reclaimer_; }
  // Passes are started, stopped and watched there.
  Scrubber& scrubber() { return *scrubber_; }
  Repairer& repairer() { return *repairer_; }

  // No call may be in flight or follow. Writes what only memory knows, and stops the targets.
  Task<Status> Stop();
  // Stops without writing anything: what a crash leaves behind. For simulation.
  Task<void> Abandon();

 private:
  Node(NodeParts parts, NodeOptions options);

  void MakeStore();
  void MakePasses();
  Task<Status> OpenTargets();
  Task<Result<TargetMedium>> OpenMedium(uint32_t i);
  Task<Result<std::unique_ptr<LocalTarget>>> OpenTarget(uint32_t i, Result<TargetMedium> medium);
  Task<Result<std::unique_ptr<LocalTarget>>> OpenOn(TargetMedium medium);
  // Not sole, it is for the cluster to know what is missing.
  bool all_here() const { return !around_.sole() || targets_.size() == parts_.media.count(); }
  Task<void> ClearUp();
  Task<void> ApplyRemovals();
  Task<void> Recover();
  Task<Status> RecoverStripe(StripeId stripe);
  Task<void> PublishRecovered(const Manifest& manifest);
  Task<void> Maintain();
  Task<void> RestoreDamaged();
  Task<void> Checkpoint();
  Task<void> RestoreLacking();
  Task<void> RepairIndexIfNeeded();
  void RepairIfDue();
  Task<void> EndBackground();

  NodeParts parts_;
  const NodeOptions options_;
  LocalTargets targets_;
  std::vector<Place> places_;
  const std::unique_ptr<Surroundings> sole_;  // Null: others were given.
  Surroundings& around_;
  std::unique_ptr<Reclaimer> reclaimer_;
  std::unique_ptr<Home> home_;
  std::unique_ptr<StripedStore> store_;
  std::unique_ptr<WindowStore> window_;
  std::unique_ptr<StripeRestorer> restorer_;
  std::unique_ptr<Scrubber> scrubber_;
  std::unique_ptr<Repairer> repairer_;
  Instant repair_due_;
  Event stopping_;
  Gate background_;
};

}  // namespace cairn::kv
