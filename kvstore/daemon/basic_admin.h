// What can be asked of a node today; verbs that need more say so.
#pragma once

#include <string>
#include <vector>

#include "kvstore/client/store_admin.h"
#include "kvstore/node/node.h"

namespace cairn::kv {

// Loop thread only. `node` must outlive it.
class BasicAdmin final : public StoreAdmin {
 public:
  explicit BasicAdmin(Node& node) : node_(node) {}

  Task<Result<StoreStats>> Stats() override;
  Task<Result<std::vector<TargetInfo>>> ListTargets() override;
  Task<Result<std::vector<SpaceInfo>>> ListSpaces() override;
  Task<Result<NamespaceId>> CreateSpace(NamespaceOptions options) override;
  Task<Status> DeleteSpace(std::string name) override;
  Task<Result<BlockPage>> ListBlocks(NamespaceId space, std::string cursor,
                                     uint32_t limit) override;
  Task<Result<BlockDetails>> Inspect(NamespaceId space, std::vector<BlockId> chain, uint32_t at,
                                     bool verify) override;
  Task<Status> StartScrub(uint64_t bytes_per_second) override;
  Task<Status> StopScrub() override;
  Task<Result<MaintenanceStatus>> ScrubStatus() override;
  Task<Status> StartRepair(uint64_t bytes_per_second) override;
  Task<Status> StopRepair() override;
  Task<Result<MaintenanceStatus>> RepairStatus() override;

 private:
  Node& node_;
};

}  // namespace cairn::kv
