// A BlockStore over a set of targets: namespaces, lookups by runs, puts and gets by stripes.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kvstore/async/event.h"
#include "kvstore/async/gate.h"
#include "kvstore/client/admission.h"
#include "kvstore/client/block_reader.h"
#include "kvstore/client/block_store.h"
#include "kvstore/client/home.h"
#include "kvstore/client/load_estimator.h"
#include "kvstore/client/space_store.h"
#include "kvstore/client/store_admin.h"
#include "kvstore/client/stripe_writer.h"

namespace cairn::kv {

struct StripedStoreOptions {
  uint64_t shard_size_max = 0;               // What a segment of every target can take.
  uint64_t write_buffer_bytes = 128 * kMiB;  // Parity, and copies of unaligned memory.
  uint64_t put_bytes_in_flight_max = 1 * kGiB;  // Of callers' memory; beyond it: kOverloaded.
  PaceOptions append_pace = {.late_min = Millis(10)};
  ReaderLimits reader;
  BlockCacheOptions cache;
  AdmissionOptions admission;
  bool target_away = false;     // Some target may come back: it has to learn of deletions.
  uint64_t capacity_bytes = 0;  // Of all targets, raw: what a write budget is measured by.
};

struct StripedStoreParts {
  Loop& loop;
  Clock& clock;
  Workers& workers;
  Random& random;
  Log& log;
  TargetSet& targets;
  Placement& placement;
  Home& home;
  StripeIndex& index;  // The home's own where one process is the home of all runs.
  SpaceStore& space_store;
  SpaceKeeper& keeper;
  PayloadMemory* network = nullptr;  // See BufferPool.
};

class StripedStore final : public BlockStore, public SessionHost {
 public:
  // Everything in `parts` must outlive it.
  StripedStore(StripedStoreParts parts, StripedStoreOptions options);
  ~StripedStore() override;

  // Reads the namespaces, and counts what they have. Call it once, before anything else.
  Task<Status> LoadSpaces();

  Task<Result<NamespaceId>> Attach(NamespaceOptions options) override;
  Task<Result<ChainHit>> Lookup(NamespaceId space, std::vector<BlockId> chain,
                                LeaseOrder lease = {}) override;
  Task<Result<EachHit>> LookupEach(NamespaceId space, std::vector<BlockId> chain, uint32_t first,
                                   LeaseOrder lease = {}) override;
  Task<std::vector<Status>> Renew(std::vector<LeaseId> leases, LeaseOrder order) override;
  Task<Status> Release(std::vector<LeaseId> leases, SessionId session) override;
  Task<std::vector<BlockReadResult>> Get(NamespaceId space, std::vector<BlockId> chain,
                                         std::vector<BlockRead> reads, Instant deadline) override;
  Task<std::vector<Status>> Put(ChainPut put) override;
  Task<std::vector<Status>> Touch(NamespaceId space, std::vector<BlockId> chain, uint32_t first,
                                  UnixMillis keep_until) override;
  Task<Status> Delete(NamespaceId space, std::vector<BlockId> chain, uint32_t first) override;
  // --- For StoreAdmin, which says what they do ---
  Task<Result<NamespaceId>> CreateSpace(NamespaceOptions options);
  Task<Status> DeleteSpace(std::string name);
  std::vector<SpaceInfo> Spaces();

  // One bounded step of what is to be done in the background: call it every so often.
  Task<void> KeepHouse() { return sweeper().SweepDeleted(); }

  SessionId OpenSession() override { return parts_.index.OpenSession(); }
  void EndSession(SessionId session) override { parts_.index.EndSession(session); }

  // Resolves when nothing of its own is in flight any more. No call may be in flight or follow.
  Task<void> Stop();

  StripeIndex& index() { return parts_.index; }
  Home& home() { return parts_.home; }
  StripeReader& reader() { return reader_.stripes(); }
  StripeWriter& writer() { return writer_; }
  // Targets whose reads or appends are slow lately; nothing as long as nothing is known.
  std::optional<PaceSeen<TargetId>> SlowTargets() const;
  StoreStats& stats() { return parts_.home.stats(); }
  // With those of its parts; what targets count comes on top.
  StoreStats FullStats();
  // Of pools and caches; those of targets come on top.
  uint64_t memory_bytes() const;

 private:
  struct Putting;   // A block that some call is storing now.
  struct PutState;  // One Put on its way.
  struct Found;     // What a lookup found.
  using PuttingKey = std::pair<NamespaceId, BlockId>;

  Task<Result<NamespaceId>> Register(NamespaceOptions options);
  Task<Status> HearOf(std::string name);
  Task<Result<NamespaceId>> AttachToOthers(NamespaceOptions options);
  SpaceRegistry& spaces() const { return parts_.home.spaces(); }
  SpaceSweeper& sweeper() { return parts_.home.sweeper(); }
  const RunJudge& judge() const { return parts_.index.judge(); }
  Task<Status> DeleteStripe(StripeName name);
  // In an order that is the same in every run.
  using PortsById = std::map<TargetId, TargetPort*>;
  // The targets that have, or are to have, something of the stripe.
  void AddConcerned(const Manifest& manifest, PortsById& ports) const;
  const SpaceRecord* FindSpace(NamespaceId space) const;
  uint32_t NowSeconds() const;
  RunKey RunOf(const SpaceRecord& space, const std::vector<BlockId>& chain, size_t at) const;
  // Adds the blocks of one run, up to the first miss, which it notes there.
  void AddRun(const KnownRun& run, const SpaceRecord& space, std::span<const BlockId> wanted,
              Found& found);
  // Cuts off what went while the lookup still waited for other runs.
  void CutGone(Found& found) const;
  Task<void> FinishEach(EachHit& hit, const std::vector<KnownRun::Place>& places,
                        LeaseOrder order);
  // Marks as gone what its home does not have any more.
  Task<LeaseGrant> Lease(std::vector<KnownStripePtr> stripes, LeaseOrder order);
  Task<BlockReadResult> GetOne(RunKey run, BlockRead read, Instant deadline,
                               LoadEstimator::Ticket& load);
  Task<BlockReadResult> GetFrom(KnownRunPtr run, RunKey key, const BlockRead& read,
                                Instant deadline, LoadEstimator::Ticket& load);
  Task<Status> DropDamaged(KnownStripePtr stripe);
  // Drops the stripes of a block that could not be read, if more of their shards are lost than
  // parity replaces.
  Task<void> DropLost(KnownRunPtr run, RunKey key, BlockId id);
  Status CheckPut(const ChainPut& put, const SpaceRecord* space) const;
  Task<void> Classify(PutState& state, size_t begin, size_t end);
  Task<void> MakeDurable(PutState& state);
  Task<void> WriteMissing(PutState& state);
  Task<Status> WriteGroup(PutState& state, const std::vector<size_t>& group);
  Task<Status> WriteWithin(SpaceRecord space, StripeOrder order);
  bool IsAdmitted(const StripeOrder& order, uint64_t bytes);
  void Finish(PutState& state, size_t at, const Status& outcome);
  Retention RetentionOf(const PutState& state) const;
  // Refreshes the blocks at these places of the chain as a hit does, and raises their keep_until
  // (seconds; 0: leaves it). The outcome of each, in order.
  Task<std::vector<Status>> TouchBlocks(SpaceRecord space, std::vector<BlockId> chain,
                                        std::vector<size_t> places, uint32_t keep_until);
  Task<void> KeepFound(PutState& state);
  static Status CheckKeep(UnixMillis keep_until);
  // 0 for no promise, or one that is over.
  uint32_t KeepSeconds(UnixMillis keep_until) const;

  StripedStoreParts parts_;
  const StripedStoreOptions options_;
  StripeWriter writer_;
  Admission admission_;
  BlockReader reader_;
  std::map<PuttingKey, std::shared_ptr<Putting>> putting_;
  uint64_t put_bytes_in_flight_ = 0;
  LoadEstimator estimator_;
};

}  // namespace cairn::kv
