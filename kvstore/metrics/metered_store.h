// A BlockStore that times every call on its way to another one.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "kvstore/client/block_store.h"
#include "kvstore/io/clock.h"
#include "kvstore/metrics/latency.h"

namespace cairn::kv {

enum class StoreVerb : uint8_t {
  kAttach, kLookup, kLookupEach, kRenew, kRelease, kGet, kPut, kTouch, kDelete
};
inline constexpr size_t kStoreVerbs = 9;
std::string_view VerbName(StoreVerb verb);  // "lookup_each"

struct MeteredStats {
  struct Verb {
    LatencyHistogram latency;  // Of calls that are done.
    uint64_t errors = 0;       // Calls of which a part failed, and not by a miss.
  };
  std::array<Verb, kStoreVerbs> verbs;
  uint64_t get_late_blocks = 0;  // Gets that their deadline ended.

  const Verb& of(StoreVerb verb) const { return verbs[static_cast<size_t>(verb)]; }
};

// Loop thread only. `store` and `clock` must outlive it.
class MeteredStore final : public BlockStore {
 public:
  MeteredStore(BlockStore& store, Clock& clock) : store_(store), clock_(clock) {}

  const MeteredStats& metered_stats() const { return stats_; }

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

 private:
  void Note(StoreVerb verb, Instant began, const Status& status);
  void Note(StoreVerb verb, Instant began, const std::vector<Status>& statuses);

  BlockStore& store_;
  Clock& clock_;
  MeteredStats stats_;
};

}  // namespace cairn::kv
