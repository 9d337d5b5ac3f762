// Lookups: run by run, one read of the index each; hits refresh what they find.
#include <algorithm>
#include <deque>
#include <span>

#include "kvstore/client/striped_store.h"

namespace cairn::kv {
namespace {

// Runs of one chain that are loaded side by side.
constexpr size_t kRunLoadsMax = 8;

struct RunLoad {
  std::span<const BlockId> wanted;
  Task<Result<KnownRunPtr>> run;
};

}  // namespace

Task<Result<ChainHit>> StripedStore::Lookup(NamespaceId space, std::vector<BlockId> chain,
                                            LeaseOrder /*lease*/) {
  const SpaceRecord* known = FindSpace(space);
  if (known == nullptr) co_return Status(Code::kInvalid, "unknown namespace: attach first");
  const SpaceRecord record = *known;
  ChainHit hit;
  ++stats_.lookups;
  stats_.lookup_blocks += chain.size();
  // Runs are loaded side by side, more of them as the hit grows, and none once one has missed.
  std::deque<RunLoad> loads;
  size_t next = 0;
  size_t window = 1;
  while (next < chain.size() || !loads.empty()) {
    while (hit.miss == MissReason::kNone && next < chain.size() && loads.size() < window) {
      const size_t size = std::min<size_t>(chain.size() - next, record.run_blocks);
      const std::span<const BlockId> wanted(chain.data() + next, size);
      loads.push_back({wanted, index_.Load(RunOf(record, chain, next), wanted)});
      next += size;
    }
    if (loads.empty()) break;
    RunLoad load = std::move(loads.front());
    loads.pop_front();
    auto& task = load.run;
    const auto run = co_await task;
    if (hit.miss != MissReason::kNone) continue;  // It was on its way already.
    if (run.ok()) {
      AddRun(*run.value(), record, load.wanted, hit);
    } else {
      hit.miss = MissReason::kUnavailable;
    }
    window = std::min(window * 2, kRunLoadsMax);
  }
  stats_.lookup_hits += hit.blocks;
  if (hit.miss != MissReason::kNone) ++stats_.misses[static_cast<size_t>(hit.miss)];
  uint64_t bytes = 0;
  for (const uint32_t size : hit.sizes) bytes += size;
  hit.load_estimate = LoadEstimate(bytes);
  co_return hit;
}

void StripedStore::AddRun(const KnownRun& run, const SpaceRecord& space,
                          std::span<const BlockId> wanted, ChainHit& hit) {
  for (const IndexClient::Answer& answer : index_.FindPrefix(run, space.id, wanted)) {
    if (answer.place == nullptr) {
      hit.miss = answer.reason;
      return;
    }
    KnownStripe& stripe = *answer.place->stripe;
    index_.Touch(stripe);
    ++hit.blocks;
    hit.sizes.push_back(stripe.manifest.blocks[answer.place->block].size);
  }
}

Task<Result<EachHit>> StripedStore::LookupEach(NamespaceId space, std::vector<BlockId> chain,
                                               uint32_t first, LeaseOrder /*lease*/) {
  const SpaceRecord* known = FindSpace(space);
  if (known == nullptr) co_return Status(Code::kInvalid, "unknown namespace: attach first");
  const SpaceRecord record = *known;
  EachHit hit;
  uint64_t bytes = 0;
  for (size_t begin = first; begin < chain.size();) {
    const size_t end = std::min<size_t>(chain.size(),
                                        (begin / record.run_blocks + 1) * record.run_blocks);
    const std::vector<BlockId> wanted(chain.begin() + static_cast<ptrdiff_t>(begin),
                                      chain.begin() + static_cast<ptrdiff_t>(end));
    auto run = co_await index_.Load(RunOf(record, chain, begin), wanted);
    for (const BlockId& id : wanted) {
      EachHit::Block& block = hit.blocks.emplace_back();
      block.miss = MissReason::kUnavailable;
      if (!run.ok()) continue;
      const IndexClient::Answer answer = index_.Find(*run.value(), space, id);
      block.miss = answer.place == nullptr ? answer.reason : MissReason::kNone;
      if (answer.place == nullptr) continue;
      KnownStripe& stripe = *answer.place->stripe;
      index_.Touch(stripe);
      block.size = stripe.manifest.blocks[answer.place->block].size;
      bytes += block.size;
    }
    begin = end;
  }
  hit.load_estimate = LoadEstimate(bytes);
  co_return hit;
}

Task<std::vector<Status>> StripedStore::Renew(std::vector<LeaseId> leases, LeaseOrder /*order*/) {
  co_return std::vector<Status>(leases.size(), Status(Code::kNotFound, "the lease ended"));
}

Task<Status> StripedStore::Release(std::vector<LeaseId> /*leases*/, SessionId /*session*/) {
  co_return Status();
}

Task<std::vector<Status>> StripedStore::Touch(NamespaceId space, std::vector<BlockId> chain,
                                              uint32_t first, UnixMillis /*keep_until*/) {
  auto hit = co_await LookupEach(space, std::move(chain), first);
  std::vector<Status> outcomes;
  if (!hit.ok()) co_return std::vector<Status>(1, hit.status());
  for (const EachHit::Block& block : hit.value().blocks) {
    outcomes.emplace_back(block.size > 0 ? Code::kOk : Code::kNotFound);
  }
  co_return outcomes;
}

Nanos StripedStore::LoadEstimate(uint64_t bytes) const {
  if (bytes == 0) return {};
  const double nanos = read_latency_nanos_ + static_cast<double>(bytes) / read_bytes_per_nano_;
  return {static_cast<int64_t>(nanos)};
}

}  // namespace cairn::kv
