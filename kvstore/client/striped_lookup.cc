// Lookups: run by run, one read of the index each; hits refresh what they find, and may lease it.
#include <algorithm>
#include <deque>
#include <span>
#include <utility>

#include "kvstore/client/striped_store.h"

namespace cairn::kv {
namespace {

// Runs of one chain that are loaded side by side.
constexpr size_t kRunLoadsMax = 8;

Status CheckOrder(const LeaseOrder& order) {
  if (order.duration.value >= 0 && order.duration <= Seconds(kLeaseSecondsMax)) return Status();
  return Status(Code::kInvalid, "a lease lasts at most " + std::to_string(kLeaseSecondsMax) +
                                    " seconds: renew it instead");
}

}  // namespace

struct StripedStore::Found {
  ChainHit hit;
  struct Part {
    KnownStripePtr stripe;
    uint32_t first = 0;  // The first block of the chain that was found in it.
  };
  std::vector<Part> parts;  // One for neighbours in the same stripe.
  std::vector<bool> in_memory;  // Of each block.
  std::vector<KnownStripePtr> Stripes() const {
    std::vector<KnownStripePtr> stripes;
    for (const Part& part : parts) stripes.push_back(part.stripe);
    return stripes;
  }
};

namespace {

struct RunLoad {
  std::span<const BlockId> wanted;
  Task<Result<KnownRunPtr>> run;
};

}  // namespace

Task<Result<ChainHit>> StripedStore::Lookup(NamespaceId space, std::vector<BlockId> chain,
                                            LeaseOrder lease) {
  const SpaceRecord* known = FindSpace(space);
  if (known == nullptr) co_return spaces().WhyNot(space);
  KV_CO_RETURN_IF_ERROR(CheckOrder(lease));
  const SpaceRecord record = *known;
  Found found;
  ChainHit& hit = found.hit;
  ++stats().lookups;
  stats().lookup_blocks += chain.size();
  // Runs are loaded side by side, more of them as the hit grows, and none once one has missed.
  std::deque<RunLoad> loads;
  size_t next = 0;
  size_t window = 1;
  while (next < chain.size() || !loads.empty()) {
    while (hit.miss == MissReason::kNone && next < chain.size() && loads.size() < window) {
      const size_t size = std::min<size_t>(chain.size() - next, record.run_blocks);
      const std::span<const BlockId> wanted(chain.data() + next, size);
      loads.push_back({wanted, parts_.index.Load(RunOf(record, chain, next), wanted)});
      next += size;
    }
    if (loads.empty()) break;
    RunLoad load = std::move(loads.front());
    loads.pop_front();
    auto& task = load.run;
    const auto run = co_await task;
    if (hit.miss != MissReason::kNone) continue;  // It was on its way already.
    if (run.ok()) {
      AddRun(*run.value(), record, load.wanted, found);
    } else {
      hit.miss = MissReason::kUnavailable;
    }
    window = std::min(window * 2, kRunLoadsMax);
  }
  if (FindSpace(space) == nullptr) co_return spaces().WhyNot(space);
  CutGone(found);
  if (lease.duration.value > 0) {
    const LeaseGrant grant = co_await Lease(found.Stripes(), lease);
    hit.lease = grant.lease;
    hit.lease_for = grant.left;
    CutGone(found);
  }
  stats().lookup_hits += hit.blocks;
  if (hit.miss != MissReason::kNone) ++stats().misses[static_cast<size_t>(hit.miss)];
  LoadSize load;
  for (size_t i = 0; i < hit.sizes.size(); ++i) load.Add(hit.sizes[i], found.in_memory[i]);
  hit.load_estimate = estimator_.Estimate(load);
  co_return std::move(hit);
}

void StripedStore::AddRun(const KnownRun& run, const SpaceRecord& space,
                          std::span<const BlockId> wanted, Found& found) {
  ChainHit& hit = found.hit;
  for (const RunJudge::Answer& answer : judge().FindPrefix(run, space.id, wanted)) {
    if (answer.place == nullptr) {
      hit.miss = answer.reason;
      return;
    }
    const KnownStripePtr& stripe = answer.place->stripe;
    if (found.parts.empty() || found.parts.back().stripe != stripe) {
      parts_.index.Touch(*stripe);
      found.parts.push_back({stripe, hit.blocks});
    }
    ++hit.blocks;
    const uint32_t block = answer.place->block;
    hit.sizes.push_back(stripe->manifest.blocks[block].size);
    found.in_memory.push_back(reader_.IsInMemory(stripe->manifest.stripe, block));
  }
}

void StripedStore::CutGone(Found& found) const {
  const auto gone = std::find_if(found.parts.begin(), found.parts.end(), [&](const auto& part) {
    return judge().WhyNot(*part.stripe) != MissReason::kNone;
  });
  if (gone == found.parts.end()) return;
  found.hit.miss = judge().WhyNot(*gone->stripe);
  found.hit.blocks = gone->first;
  found.hit.sizes.resize(gone->first);
  found.in_memory.resize(gone->first);
  found.parts.erase(gone, found.parts.end());
}

Task<LeaseGrant> StripedStore::Lease(std::vector<KnownStripePtr> stripes, LeaseOrder order) {
  std::vector<LeaseTable::Stripe> leased;
  for (const KnownStripePtr& stripe : stripes) {
    const Manifest& manifest = stripe->manifest;
    leased.push_back({manifest.stripe, uint64_t{manifest.shard_size} * manifest.shard_count()});
  }
  const auto less = [](const auto& a, const auto& b) { return a.id < b.id; };
  const auto same = [](const auto& a, const auto& b) { return a.id == b.id; };
  std::sort(leased.begin(), leased.end(), less);
  leased.erase(std::unique(leased.begin(), leased.end(), same), leased.end());
  LeaseGrant grant = co_await parts_.index.Grant(std::move(leased), order);
  for (const KnownStripePtr& stripe : stripes) {
    const auto gone = std::find(grant.gone.begin(), grant.gone.end(), stripe->manifest.stripe);
    if (gone != grant.gone.end()) stripe->gone = true;
  }
  co_return std::move(grant);
}

Task<Result<EachHit>> StripedStore::LookupEach(NamespaceId space, std::vector<BlockId> chain,
                                               uint32_t first, LeaseOrder lease) {
  const SpaceRecord* known = FindSpace(space);
  if (known == nullptr) co_return spaces().WhyNot(space);
  KV_CO_RETURN_IF_ERROR(CheckOrder(lease));
  const SpaceRecord record = *known;
  EachHit hit;
  ++stats().lookups;
  stats().lookup_blocks += chain.size() - std::min<size_t>(first, chain.size());
  std::vector<KnownRun::Place> places;  // Of each block; without a stripe for a miss.
  std::deque<RunLoad> loads;
  size_t next = first;
  while (next < chain.size() || !loads.empty()) {
    while (next < chain.size() && loads.size() < kRunLoadsMax) {
      const size_t end =
          std::min<size_t>(chain.size(), (next / record.run_blocks + 1) * record.run_blocks);
      const std::span<const BlockId> wanted(chain.data() + next, end - next);
      loads.push_back({wanted, parts_.index.Load(RunOf(record, chain, next), wanted)});
      next = end;
    }
    RunLoad load = std::move(loads.front());
    loads.pop_front();
    auto& task = load.run;
    const auto run = co_await task;
    for (const BlockId& id : load.wanted) {
      EachHit::Block& block = hit.blocks.emplace_back();
      KnownRun::Place& place = places.emplace_back();
      block.miss = MissReason::kUnavailable;
      if (!run.ok()) continue;
      const RunJudge::Answer answer = judge().Find(*run.value(), space, id);
      block.miss = answer.place == nullptr ? answer.reason : MissReason::kNone;
      if (answer.place == nullptr) continue;
      place = *answer.place;
      block.size = place.stripe->manifest.blocks[place.block].size;
    }
  }
  if (FindSpace(space) == nullptr) co_return spaces().WhyNot(space);
  co_await FinishEach(hit, places, lease);
  co_return std::move(hit);
}

Task<void> StripedStore::FinishEach(EachHit& hit, const std::vector<KnownRun::Place>& places,
                                    LeaseOrder order) {
  std::vector<KnownStripePtr> stripes;
  for (const KnownRun::Place& place : places) {
    const KnownStripePtr& stripe = place.stripe;
    // It may have gone while the lookup still waited for other runs.
    if (stripe == nullptr || judge().WhyNot(*stripe) != MissReason::kNone) continue;
    if (!stripes.empty() && stripes.back() == stripe) continue;
    parts_.index.Touch(*stripe);
    stripes.push_back(stripe);
  }
  if (order.duration.value > 0) {
    const LeaseGrant grant = co_await Lease(std::move(stripes), order);
    hit.lease = grant.lease;
    hit.lease_for = grant.left;
  }
  LoadSize load;
  for (size_t i = 0; i < places.size(); ++i) {
    EachHit::Block& block = hit.blocks[i];
    const KnownStripePtr& stripe = places[i].stripe;
    if (stripe != nullptr) block.miss = judge().WhyNot(*stripe);
    if (block.miss != MissReason::kNone) {
      block.size = 0;
      ++stats().misses[static_cast<size_t>(block.miss)];
      continue;
    }
    ++stats().lookup_hits;
    load.Add(block.size, reader_.IsInMemory(stripe->manifest.stripe, places[i].block));
  }
  hit.load_estimate = estimator_.Estimate(load);
}

Task<std::vector<Status>> StripedStore::Renew(std::vector<LeaseId> leases, LeaseOrder order) {
  const Status checked = CheckOrder(order);
  if (!checked.ok()) co_return std::vector<Status>(leases.size(), checked);
  co_return co_await parts_.index.Renew(std::move(leases), order);
}

Task<Status> StripedStore::Release(std::vector<LeaseId> leases, SessionId session) {
  return parts_.index.Release(std::move(leases), session);
}

}  // namespace cairn::kv
