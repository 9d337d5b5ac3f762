// The verbs of the three interfaces, each as one message.
#include "kvstore/remote/remote_store.h"

#include <unistd.h>

#include <utility>

#include "kvstore/remote/remote_core.h"

namespace cairn::kv {

using wire::Verb;

RemoteStore::RemoteStore(std::unique_ptr<Core> core) : core_(std::move(core)) {}
RemoteStore::~RemoteStore() = default;

Task<Result<std::unique_ptr<RemoteStore>>> RemoteStore::Connect(RemoteParts parts,
                                                                RemoteOptions options) {
  if (options.name.empty()) {
    options.name = std::string("process ").append(std::to_string(getpid()));
  }
  auto core = std::make_unique<Core>(parts, std::move(options));
  Core& starting = *core;
  const Status started = co_await starting.Start();
  if (!started.ok()) co_return started;
  co_return std::unique_ptr<RemoteStore>(new RemoteStore(std::move(core)));
}

Task<void> RemoteStore::Stop() { return core_->Stop(); }
Task<Result<MutableByteSpan>> RemoteStore::NewRegion(uint64_t size) {
  return core_->NewRegion(size);
}
Task<Status> RemoteStore::FreeRegion(MutableByteSpan region) { return core_->FreeRegion(region); }

bool RemoteStore::connected() const { return core_->session().ok(); }
bool RemoteStore::shares_memory() const {
  const auto session = core_->session();
  return session.ok() && session.value()->shares_memory();
}
const RemoteStats& RemoteStore::remote_stats() const { return core_->stats; }

// --- BlockStore ---------------------------------------------------------------------------------

Task<Result<NamespaceId>> RemoteStore::Attach(NamespaceOptions options) {
  return core_->Attach(std::move(options));
}

Task<Result<ChainHit>> RemoteStore::Lookup(NamespaceId space, std::vector<BlockId> chain,
                                           LeaseOrder lease) {
  wire::LookupRequest request{.space = space, .chain = std::move(chain), .lease = lease.duration};
  return core_->Ask<ChainHit>(Verb::kLookup, std::move(request));
}

Task<Result<EachHit>> RemoteStore::LookupEach(NamespaceId space, std::vector<BlockId> chain,
                                              uint32_t first, LeaseOrder lease) {
  wire::LookupEachRequest request{
      .space = space, .chain = std::move(chain), .first = first, .lease = lease.duration};
  return core_->Ask<EachHit>(Verb::kLookupEach, std::move(request));
}

Task<std::vector<Status>> RemoteStore::Renew(std::vector<LeaseId> leases, LeaseOrder order) {
  const size_t count = leases.size();
  wire::RenewRequest request{.leases = std::move(leases), .lease = order.duration};
  return core_->AskAll(Verb::kRenew, count, std::move(request));
}

Task<Status> RemoteStore::Release(std::vector<LeaseId> leases, SessionId) {
  wire::ReleaseRequest request{.leases = std::move(leases)};
  return core_->Tell(Verb::kRelease, std::move(request));
}

Task<std::vector<BlockReadResult>> RemoteStore::Get(NamespaceId space, std::vector<BlockId> chain,
                                                    std::vector<BlockRead> reads,
                                                    Instant deadline) {
  return core_->Get(space, std::move(chain), std::move(reads), deadline);
}

Task<std::vector<Status>> RemoteStore::Put(ChainPut put) { return core_->Put(std::move(put)); }

Task<std::vector<Status>> RemoteStore::Touch(NamespaceId space, std::vector<BlockId> chain,
                                             uint32_t first, UnixMillis keep_until) {
  const size_t count = chain.size() - std::min<size_t>(first, chain.size());
  wire::TouchRequest request{
      .space = space, .chain = std::move(chain), .first = first, .keep_until = keep_until};
  return core_->AskAll(Verb::kTouch, count, std::move(request));
}

Task<Status> RemoteStore::Delete(NamespaceId space, std::vector<BlockId> chain, uint32_t first) {
  wire::DeleteRequest request{.space = space, .chain = std::move(chain), .first = first};
  return core_->Tell(Verb::kDelete, std::move(request));
}

// --- StoreAdmin ---------------------------------------------------------------------------------

Task<Result<StoreStats>> RemoteStore::Stats() {
  return core_->Ask<StoreStats>(Verb::kStats, wire::Empty());
}
Task<Result<std::vector<TargetInfo>>> RemoteStore::ListTargets() {
  return core_->Ask<std::vector<TargetInfo>>(Verb::kListTargets, wire::Empty());
}
Task<Result<std::vector<SpaceInfo>>> RemoteStore::ListSpaces() {
  return core_->Ask<std::vector<SpaceInfo>>(Verb::kListSpaces, wire::Empty());
}
Task<Result<NamespaceId>> RemoteStore::CreateSpace(NamespaceOptions options) {
  return core_->CreateSpace(std::move(options));
}
Task<Status> RemoteStore::DeleteSpace(std::string name) {
  wire::NameRequest request{.name = std::move(name)};
  return core_->Tell(Verb::kDeleteSpace, std::move(request));
}
Task<Result<BlockPage>> RemoteStore::ListBlocks(NamespaceId space, std::string cursor,
                                                uint32_t limit) {
  wire::ListBlocksRequest request{.space = space, .cursor = std::move(cursor), .limit = limit};
  return core_->Ask<BlockPage>(Verb::kListBlocks, std::move(request));
}
Task<Result<BlockDetails>> RemoteStore::Inspect(NamespaceId space, std::vector<BlockId> chain,
                                                uint32_t at, bool verify) {
  wire::InspectRequest request{
      .space = space, .chain = std::move(chain), .at = at, .verify = verify};
  return core_->Ask<BlockDetails>(Verb::kInspect, std::move(request));
}
Task<Status> RemoteStore::StartScrub(uint64_t bytes_per_second) {
  wire::RateRequest request{.bytes_per_second = bytes_per_second};
  return core_->Tell(Verb::kStartScrub, std::move(request));
}
Task<Status> RemoteStore::StopScrub() { return core_->Tell(Verb::kStopScrub, wire::Empty()); }
Task<Result<MaintenanceStatus>> RemoteStore::ScrubStatus() {
  return core_->Ask<MaintenanceStatus>(Verb::kScrubStatus, wire::Empty());
}
Task<Status> RemoteStore::StartRepair(uint64_t bytes_per_second) {
  wire::RateRequest request{.bytes_per_second = bytes_per_second};
  return core_->Tell(Verb::kStartRepair, std::move(request));
}
Task<Status> RemoteStore::StopRepair() { return core_->Tell(Verb::kStopRepair, wire::Empty()); }
Task<Result<MaintenanceStatus>> RemoteStore::RepairStatus() {
  return core_->Ask<MaintenanceStatus>(Verb::kRepairStatus, wire::Empty());
}

// --- ClusterAdmin -------------------------------------------------------------------------------

Task<Result<ClusterInfo>> RemoteStore::DescribeCluster() {
  return core_->Ask<ClusterInfo>(Verb::kDescribeCluster, wire::Empty());
}
Task<Status> RemoteStore::DrainNode(std::string node, Draining wanted) {
  wire::DrainNodeRequest request{.node = std::move(node), .wanted = wanted};
  return core_->Tell(Verb::kDrainNode, std::move(request));
}
Task<Status> RemoteStore::DrainTarget(TargetId target, Draining wanted) {
  wire::DrainTargetRequest request{.target = target, .wanted = wanted};
  return core_->Tell(Verb::kDrainTarget, std::move(request));
}

}  // namespace cairn::kv
