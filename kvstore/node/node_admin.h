// StoreAdmin over one node: what it has, and where.
#pragma once

#include <string>
#include <vector>

#include "kvstore/client/store_admin.h"
#include "kvstore/node/node.h"

namespace cairn::kv {

// Loop thread only. The node must outlive it.
class NodeAdmin final : public StoreAdmin {
 public:
  explicit NodeAdmin(Node& node) : node_(node) {}

  Task<Result<StoreStats>> Stats() override;
  Task<Result<std::vector<TargetInfo>>> ListTargets() override;
  Task<Result<std::vector<SpaceInfo>>> ListSpaces() override;
  Task<Result<NamespaceId>> CreateSpace(NamespaceOptions options) override;
  Task<Status> DeleteSpace(std::string name) override;

  // A block that a crash left in two stripes is listed with each.
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
  // Where a listing goes on.
  struct Cursor {
    size_t place = 0;   // Of node_.targets().
    std::string after;  // The manifest key that was listed last; "": none on this target.
    uint32_t done = 0;  // Of its blocks, when it was not listed to its end.
  };
  static std::string Encode(const Cursor& cursor);
  static Result<Cursor> Decode(NamespaceId space, const std::string& text);

  // Adds the stripe's blocks from `done` on, up to the limit. Returns how many blocks are done.
  uint32_t AddBlocks(const Manifest& manifest, uint32_t done, uint32_t limit, BlockPage& page);
  // True when an earlier target lists the stripe too.
  bool IsRepeated(size_t place, StripeId stripe) const;
  Task<Status> ListTarget(NamespaceId space, Cursor& cursor, uint32_t limit, BlockPage& page);
  Task<std::vector<ShardInfo>> AskShards(const Manifest& manifest, bool verify) const;
  BlockInfo InfoOf(const Manifest& manifest, size_t block) const;
  uint32_t PlaceOf(TargetId target) const;
  bool IsInMemory(const std::string& name) const;

  Node& node_;
};

}  // namespace cairn::kv
