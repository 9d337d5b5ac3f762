// Reads counters and records; everything else is honest about not being there.
#include "kvstore/daemon/basic_admin.h"

#include <utility>

namespace cairn::kv {
namespace {

Status NotYet(const char* verb) {
  return Status(Code::kUnavailable, std::string("this store cannot ").append(verb).append(" yet"));
}

}  // namespace

Task<Result<StoreStats>> BasicAdmin::Stats() { co_return node_.stats(); }

Task<Result<std::vector<TargetInfo>>> BasicAdmin::ListTargets() {
  std::vector<TargetInfo> targets;
  for (const auto& target : node_.targets()) {
    const SegmentLogStats stats = target->log().stats();
    TargetInfo info;
    info.place = static_cast<uint32_t>(targets.size());
    info.id = target->id();
    info.label = target->label();
    info.capacity_bytes = stats.capacity_bytes;
    info.free_bytes = stats.free_bytes;
    info.live_bytes = stats.live_bytes;
    info.shards = stats.shards;
    info.reads = stats.reads;
    info.bytes_read = stats.bytes_read;
    info.bytes_appended = stats.bytes_appended;
    info.bytes_moved = stats.bytes_moved;
    info.corrupt_reads = stats.corrupt_reads;
    targets.push_back(std::move(info));
  }
  co_return targets;
}

Task<Result<std::vector<SpaceInfo>>> BasicAdmin::ListSpaces() {
  std::vector<SpaceInfo> spaces;
  if (node_.targets().empty()) co_return spaces;
  LocalTarget& target = *node_.targets().front();
  Result<std::vector<SpaceRecord>> records = co_await target.ListSpaces();
  if (!records.ok()) co_return records.status();
  for (const SpaceRecord& record : records.value()) {
    SpaceInfo info;
    info.id = record.id;
    info.options.name = record.name;
    info.options.fingerprint = record.fingerprint;
    info.options.data_shards = record.data_shards;
    info.options.parity_shards = record.parity_shards;
    info.options.run_blocks = record.run_blocks;
    info.options.retention = record.retention;
    info.options.ttl_seconds = record.ttl_seconds;
    spaces.push_back(std::move(info));
  }
  co_return spaces;
}

Task<Result<NamespaceId>> BasicAdmin::CreateSpace(NamespaceOptions options) {
  Result<std::vector<SpaceInfo>> spaces = co_await ListSpaces();
  if (!spaces.ok()) co_return spaces.status();
  for (const SpaceInfo& space : spaces.value()) {
    if (space.options.name == options.name) {
      co_return Status(Code::kConflict, "namespace '" + options.name + "' exists already");
    }
  }
  options.create = true;
  Result<NamespaceId> created = co_await node_.store().Attach(std::move(options));
  co_return created;
}

Task<Status> BasicAdmin::DeleteSpace(std::string) {
  co_return Status(Code::kNotFound, "this store cannot delete namespaces yet");
}
Task<Result<BlockPage>> BasicAdmin::ListBlocks(NamespaceId, std::string, uint32_t) {
  co_return NotYet("list blocks");
}
Task<Result<BlockDetails>> BasicAdmin::Inspect(NamespaceId, std::vector<BlockId>, uint32_t, bool) {
  co_return NotYet("inspect blocks");
}
Task<Status> BasicAdmin::StartScrub(uint64_t bytes_per_second) {
  co_return node_.scrubber().Start(bytes_per_second);
}
Task<Status> BasicAdmin::StopScrub() {
  co_await node_.scrubber().Stop();
  co_return Status();
}
Task<Result<MaintenanceStatus>> BasicAdmin::ScrubStatus() { co_return node_.scrubber().status(); }
Task<Status> BasicAdmin::StartRepair(uint64_t bytes_per_second) {
  co_return node_.repairer().Start(bytes_per_second);
}
Task<Status> BasicAdmin::StopRepair() {
  co_await node_.repairer().Stop();
  co_return Status();
}
Task<Result<MaintenanceStatus>> BasicAdmin::RepairStatus() { co_return node_.repairer().status(); }

}  // namespace cairn::kv
