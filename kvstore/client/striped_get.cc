// Gets: each block from the first of its stripes that gives it exact.
#include <algorithm>
#include <optional>

#include "kvstore/client/striped_store.h"

namespace cairn::kv {
namespace {

// Searches from `hint` on, then before it.
std::optional<size_t> PositionOf(const std::vector<BlockId>& chain, const BlockId& id,
                                 size_t hint) {
  for (size_t i = 0; i < chain.size(); ++i) {
    const size_t at = (hint + i) % chain.size();
    if (chain[at] == id) return at;
  }
  return std::nullopt;
}

}  // namespace

Task<std::vector<BlockReadResult>> StripedStore::Get(NamespaceId space, std::vector<BlockId> chain,
                                                     std::vector<BlockRead> reads,
                                                     Instant deadline) {
  std::vector<BlockReadResult> results;
  stats().gets += reads.size();
  const SpaceRecord* known = FindSpace(space);
  if (known == nullptr) {
    stats().get_misses += reads.size();
    results.assign(reads.size(), {spaces().WhyNot(space), 0});
    co_return results;
  }
  const SpaceRecord record = *known;
  LoadEstimator::Ticket load = estimator_.Begin(parts_.clock.Now());
  std::vector<Task<BlockReadResult>> calls;
  size_t cursor = 0;  // Reads mostly come in chain order.
  for (const BlockRead& read : reads) {
    const std::optional<size_t> at = PositionOf(chain, read.id, cursor);
    if (!at) {
      calls.push_back(GetOne({}, {.id = read.id}, deadline, load));
      continue;
    }
    cursor = *at;
    calls.push_back(GetOne(RunOf(record, chain, cursor), read, deadline, load));
  }
  uint64_t bytes = 0;
  for (Task<BlockReadResult>& call : calls) {
    results.push_back(co_await call);
    bytes += results.back().size;
    ++(results.back().status.ok() ? stats().get_hits : stats().get_misses);
  }
  stats().bytes_got += bytes;
  estimator_.End(load, bytes, parts_.clock.Now());
  co_return results;
}

Task<BlockReadResult> StripedStore::GetOne(RunKey key, BlockRead read, Instant deadline,
                                           LoadEstimator::Ticket& load) {
  BlockReadResult result;
  const std::vector<BlockId> wanted{read.id};
  if (read.scatter.size() > kScatterMax) {
    result.status = Status(Code::kInvalid, "more segments than a read may have");
    co_return result;
  }
  if (read.scatter.empty()) read.scatter = {read.into};
  if (key == RunKey{}) {
    result.status = Status(Code::kInvalid, "the block is not in the chain");
    co_return result;
  }
  auto run = co_await parts_.index.Load(key, wanted);
  if (run.ok()) result = co_await GetFrom(run.value(), key, read, deadline, load);
  const auto fails = [&] { return result.status.code() == Code::kUnavailable; };
  // One replica's word is enough for a hit. When its stripes fail, others may know better ones.
  if (run.ok() && !run.value()->complete && fails()) {
    run = co_await parts_.index.LoadAll(key);
    if (run.ok()) result = co_await GetFrom(run.value(), key, read, deadline, load);
  }
  if (!run.ok()) result.status = run.status();
  const bool in_time = parts_.clock.Now() < deadline;
  if (run.ok() && fails() && in_time) co_await DropLost(run.value(), key, read.id);
  co_return result;
}

Task<void> StripedStore::DropLost(KnownRunPtr run, RunKey key, BlockId id) {
  std::vector<KnownStripePtr> stripes;
  for (const KnownRun::Place& place : run->Find(id)) {
    if (judge().WhyNot(*place.stripe) == MissReason::kNone) stripes.push_back(place.stripe);
  }
  for (const KnownStripePtr& stripe : stripes) {
    const bool lost = co_await parts_.targets.IsLost(stripe->manifest);
    if (!lost) continue;
    // Unless a repair has moved them meanwhile: then it is filed anew.
    const auto now = co_await parts_.index.LoadAll(key);
    if (!now.ok() || !now.value()->answered_by_all) co_return;
    KnownStripePtr same;
    for (const KnownStripePtr& filed : now.value()->stripes()) {
      if (filed->manifest.stripe != stripe->manifest.stripe) continue;
      if (filed->manifest.generation == stripe->manifest.generation) same = filed;
    }
    if (same != nullptr) (void)co_await DropDamaged(std::move(same));
  }
}

Task<BlockReadResult> StripedStore::GetFrom(KnownRunPtr run, RunKey key, const BlockRead& read,
                                            Instant deadline,
                                            LoadEstimator::Ticket& load) {
  BlockReadResult result;
  const RunJudge::Answer answer = judge().Find(*run, key.space, read.id);
  if (answer.place == nullptr) {
    const bool gone = answer.reason != MissReason::kUnavailable;
    result.status = Status(gone ? Code::kNotFound : Code::kUnavailable);
    co_return result;
  }
  // Several stripes have it only after a crash: copies, since whoever reads awaits.
  std::vector<KnownRun::Place> places;
  for (const KnownRun::Place& place : run->Find(read.id)) {
    if (judge().WhyNot(*place.stripe) == MissReason::kNone) places.push_back(place);
  }
  std::stable_sort(places.begin(), places.end(), [this](const auto& a, const auto& b) {
    return judge().Spare(*a.stripe) > judge().Spare(*b.stripe);
  });
  for (const KnownRun::Place& place : places) {
    const uint32_t size = place.stripe->manifest.blocks[place.block].size;
    const uint64_t checksum = place.stripe->manifest.blocks[place.block].checksum;
    if (SizeOf(read.scatter) < size) {
      result.status = Status(Code::kInvalid, std::to_string(size).append(" bytes are needed"));
      co_return result;
    }
    parts_.index.Touch(*place.stripe);
    estimator_.Add(load, size, reader_.IsInMemory(place.stripe->manifest.stripe, place.block));
    if (read.may_be_lent) result.lent = reader_.Lend(place.stripe->manifest.stripe, place.block);
    if (result.lent != nullptr) {
      result.size = size;
      result.checksum = checksum;
      co_return result;
    }
    result.status = co_await reader_.Read(place.stripe, place.block, read.scatter, deadline);
    if (result.status.ok()) {
      result.size = size;
      result.checksum = checksum;
      co_return result;
    }
    if (result.status.code() == Code::kCorrupt) {
      result.status = co_await DropDamaged(place.stripe);
    }
  }
  co_return result;
}

// What can never be restored must not be shown by lookups, nor keep a put from storing it again.
Task<Status> StripedStore::DropDamaged(KnownStripePtr stripe) {
  const Manifest& manifest = stripe->manifest;
  const StripeName name{manifest.space, manifest.run, manifest.stripe};
  if (!stripe->gone) {
    stripe->gone = true;
    ++stats().dropped_stripes;
    parts_.log.Warning(manifest.stripe.ToHex().insert(0, "damaged beyond parity, dropped: "));
    (void)co_await parts_.index.Remove(name, MissReason::kUnavailable);
  }
  co_return Status(Code::kUnavailable, "damaged beyond parity");
}

}  // namespace cairn::kv
