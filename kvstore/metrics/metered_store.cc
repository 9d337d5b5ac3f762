// Each verb: the time before, the call, the time after.
#include "kvstore/metrics/metered_store.h"

#include <utility>

namespace cairn::kv {
namespace {

bool IsError(const Status& status) { return !status.ok() && status.code() != Code::kNotFound; }

}  // namespace

std::string_view VerbName(StoreVerb verb) {
  static constexpr std::array<std::string_view, kStoreVerbs> kNames = {
      "attach", "lookup", "lookup_each", "renew", "release", "get", "put", "touch", "delete"};
  return kNames[static_cast<size_t>(verb)];
}

void MeteredStore::Note(StoreVerb verb, Instant began, const Status& status) {
  MeteredStats::Verb& entry = stats_.verbs[static_cast<size_t>(verb)];
  entry.latency.Add(clock_.Now() - began);
  if (IsError(status)) ++entry.errors;
}

void MeteredStore::Note(StoreVerb verb, Instant began, const std::vector<Status>& statuses) {
  for (const Status& status : statuses) {
    if (IsError(status)) return Note(verb, began, status);
  }
  Note(verb, began, Status());
}

Task<Result<NamespaceId>> MeteredStore::Attach(NamespaceOptions options) {
  const Instant began = clock_.Now();
  Result<NamespaceId> space = co_await store_.Attach(std::move(options));
  Note(StoreVerb::kAttach, began, space.status());
  co_return space;
}

Task<Result<ChainHit>> MeteredStore::Lookup(NamespaceId space, std::vector<BlockId> chain,
                                            LeaseOrder lease) {
  const Instant began = clock_.Now();
  Result<ChainHit> hit = co_await store_.Lookup(space, std::move(chain), lease);
  Note(StoreVerb::kLookup, began, hit.status());
  co_return hit;
}

Task<Result<EachHit>> MeteredStore::LookupEach(NamespaceId space, std::vector<BlockId> chain,
                                               uint32_t first, LeaseOrder lease) {
  const Instant began = clock_.Now();
  Result<EachHit> hit = co_await store_.LookupEach(space, std::move(chain), first, lease);
  Note(StoreVerb::kLookupEach, began, hit.status());
  co_return hit;
}

Task<std::vector<Status>> MeteredStore::Renew(std::vector<LeaseId> leases, LeaseOrder order) {
  const Instant began = clock_.Now();
  std::vector<Status> renewed = co_await store_.Renew(std::move(leases), order);
  Note(StoreVerb::kRenew, began, renewed);
  co_return renewed;
}

Task<Status> MeteredStore::Release(std::vector<LeaseId> leases, SessionId session) {
  const Instant began = clock_.Now();
  Status released = co_await store_.Release(std::move(leases), session);
  Note(StoreVerb::kRelease, began, released);
  co_return released;
}

Task<std::vector<BlockReadResult>> MeteredStore::Get(NamespaceId space, std::vector<BlockId> chain,
                                                     std::vector<BlockRead> reads,
                                                     Instant deadline) {
  const Instant began = clock_.Now();
  std::vector<BlockReadResult> results =
      co_await store_.Get(space, std::move(chain), std::move(reads), deadline);
  Status worst;
  for (const BlockReadResult& result : results) {
    if (result.status.code() == Code::kDeadline) ++stats_.get_late_blocks;
    if (IsError(result.status)) worst = result.status;
  }
  Note(StoreVerb::kGet, began, worst);
  co_return results;
}

Task<std::vector<Status>> MeteredStore::Put(ChainPut put) {
  const Instant began = clock_.Now();
  std::vector<Status> stored = co_await store_.Put(std::move(put));
  Note(StoreVerb::kPut, began, stored);
  co_return stored;
}

Task<std::vector<Status>> MeteredStore::Touch(NamespaceId space, std::vector<BlockId> chain,
                                              uint32_t first, UnixMillis keep_until) {
  const Instant began = clock_.Now();
  std::vector<Status> touched = co_await store_.Touch(space, std::move(chain), first, keep_until);
  Note(StoreVerb::kTouch, began, touched);
  co_return touched;
}

Task<Status> MeteredStore::Delete(NamespaceId space, std::vector<BlockId> chain, uint32_t first) {
  const Instant began = clock_.Now();
  Status deleted = co_await store_.Delete(space, std::move(chain), first);
  Note(StoreVerb::kDelete, began, deleted);
  co_return deleted;
}

}  // namespace cairn::kv
