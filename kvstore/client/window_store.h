// The class `window` beside a store on targets: namespaces whose blocks live in memory only.
//
// Calls for such a namespace are answered and counted here, all others by the store behind it. The
// promises are the same, but that a restart loses everything: whoever uses one attaches again.
// Leases are not given (a lookup says so with lease 0), and keep_until is refused.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kvstore/cache/memory_blocks.h"
#include "kvstore/client/block_store.h"
#include "kvstore/client/store_admin.h"
#include "kvstore/io/clock.h"

namespace cairn::kv {

// Loop thread only. The clock, the store behind it and its counters must outlive it.
class WindowStore final : public BlockStore {
 public:
  WindowStore(Clock& clock, BlockStore& behind, StoreStats& stats, uint64_t bytes_max)
      : clock_(clock), behind_(behind), stats_(stats), blocks_(bytes_max) {}

  Task<Result<NamespaceId>> Attach(NamespaceOptions options) override;
  Task<Result<ChainHit>> Lookup(NamespaceId space, std::vector<BlockId> chain,
                                LeaseOrder lease) override;
  Task<Result<EachHit>> LookupEach(NamespaceId space, std::vector<BlockId> chain, uint32_t first,
                                   LeaseOrder lease) override;
  Task<std::vector<Status>> Renew(std::vector<LeaseId> leases, LeaseOrder order) override;
  Task<Status> Release(std::vector<LeaseId> leases, SessionId session) override;
  Task<std::vector<BlockReadResult>> Get(NamespaceId space, std::vector<BlockId> chain,
                                         std::vector<BlockRead> reads, Instant deadline) override;
  Task<std::vector<Status>> Put(ChainPut put) override;
  Task<std::vector<Status>> Touch(NamespaceId space, std::vector<BlockId> chain, uint32_t first,
                                  UnixMillis keep_until) override;
  Task<Status> Delete(NamespaceId space, std::vector<BlockId> chain, uint32_t first) override;

  // --- Administration, of the namespaces in memory only ---

  // kConflict when one of that name exists. That none on the targets has it is the caller's to see.
  Result<NamespaceId> CreateSpace(NamespaceOptions options);
  // Its blocks are gone at once. kNotFound when there is none.
  Status DeleteSpace(const std::string& name);
  // By name; stripes are counted as blocks.
  std::vector<SpaceInfo> Spaces() const;

  // Frees the room of what has expired.
  void Purge() { blocks_.Purge(clock_.UnixNow()); }
  uint64_t memory_bytes() const { return blocks_.memory_bytes(); }

 private:
  struct Space {
    NamespaceOptions options;  // Without its token.
    std::optional<StoredKey> token_key;
  };
  const NamespaceOptions* Find(const NamespaceId& space) const;
  std::map<NamespaceId, Space>::iterator FindName(const std::string& name);
  void CountMiss() { ++stats_.misses[static_cast<size_t>(MissReason::kAbsent)]; }
  // The size of a block that is here, which counts as a hit; 0 when it is not.
  uint32_t Hit(const NamespaceId& space, const NamespaceOptions& options, BlockId id);
  BlockReadResult GetOne(const NamespaceId& space, const NamespaceOptions& options,
                         const std::vector<BlockId>& chain, const BlockRead& read);
  Status CheckPut(const ChainPut& put) const;
  Status PutOne(const MemoryBlocks::Key& key, std::span<const ByteSpan> parts,
                uint32_t ttl_seconds, std::optional<uint64_t> checksum);

  Clock& clock_;
  BlockStore& behind_;
  StoreStats& stats_;
  MemoryBlocks blocks_;
  std::map<NamespaceId, Space> spaces_;
};

}  // namespace cairn::kv
