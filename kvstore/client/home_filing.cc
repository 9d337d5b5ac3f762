// How a home files stripes: two acknowledgements to publish, and nothing shown before.
#include <algorithm>
#include <utility>

#include "kvstore/client/home_index.h"
#include "kvstore/client/whole_stripes.h"
#include "kvstore/types/limits.h"

namespace cairn::kv {
namespace {

// What replicas said to a stripe that was filed with them.
class Filing {
 public:
  // `filled`: Placement::Filled. What others alone have taken the next home might withdraw.
  Filing(std::vector<TargetId> filled, size_t needed)
      : filled_(std::move(filled)), needed_(needed) {}

  void Note(TargetId replica, const Status& outcome) {
    if (!outcome.ok()) {
      failure_ = outcome;
      return;
    }
    ++acknowledged_;
    lasts_ |= std::find(filled_.begin(), filled_.end(), replica) != filled_.end();
  }
  size_t acknowledged() const { return acknowledged_; }
  bool enough() const { return acknowledged_ >= needed_; }
  // Whatever one of them said: others may have it, so this is no refusal.
  Status outcome() const {
    if (!enough()) return Status(Code::kUnavailable, failure_.ToString());
    if (lasts_) return Status();
    return Status(Code::kUnavailable, "the replicas that have all of the run are away");
  }

 private:
  const std::vector<TargetId> filled_;
  const size_t needed_;
  size_t acknowledged_ = 0;
  bool lasts_ = false;
  Status failure_{Code::kUnavailable, "no target takes index records"};
};

}  // namespace

Task<Status> HomeIndex::Publish(IndexedStripe stripe, Durability durability) {
  const StripeName name{stripe.manifest.space, stripe.manifest.run, stripe.manifest.stripe};
  const bool was_filed = StateOf(name.stripe).has_value();
  const RunKey key{name.space, name.run};
  const uint64_t tenure = TenureOf(key).since;
  // No lookup shows it, and no put takes its blocks for stored, before enough replicas have it.
  if (!was_filed) hidden_.insert_or_assign(name.stripe, HiddenIn{key, tenure});
  publishing_.insert(name.stripe);
  const Status outcome = co_await FileWithReplicas(stripe, durability);
  if (TenureOf(key).since != tenure) {
    publishing_.erase(name.stripe);
    co_return HasMoved();
  }
  if (spaces_.IsDeleted(name.space)) {
    (void)co_await Remove(name, MissReason::kAbsent);
    publishing_.erase(name.stripe);
    co_return spaces_.WhyNot(name.space);
  }
  // Not its shards: who publishes it may try once more, and others may know it from before.
  Status taken_back(Code::kUnavailable);
  if (!outcome.ok() && !was_filed) taken_back = co_await WithdrawAll(name);
  publishing_.erase(name.stripe);
  NoteChange(key);
  // What a replica may still have is shown once all have it.
  if (outcome.ok() || taken_back.ok()) hidden_.erase(name.stripe);
  if (!was_filed) CountIn(name.stripe);
  if (!outcome.ok()) co_return outcome;
  gone_.Forget(stripe.manifest);
  cache_.Add(key, std::move(stripe));
  co_return Status();
}

Task<bool> HomeIndex::IsStored(KnownRunPtr run, const Manifest& manifest,
                               std::span<const BlockId> blocks) const {
  const std::set<StripeId> whole =
      co_await FindWhole(judge_, targets_, run, manifest.space, blocks);
  co_return std::all_of(blocks.begin(), blocks.end(), [&](const BlockId& block) {
    const KnownRun::Place* place = judge_.Find(*run, manifest.space, block).place;
    if (place == nullptr) return false;
    const StripeId stripe = place->stripe->manifest.stripe;
    return stripe != manifest.stripe && whole.contains(stripe);
  });
}

Task<Status> HomeIndex::PublishFirst(IndexedStripe stripe, Durability durability) {
  const RunKey key{stripe.manifest.space, stripe.manifest.run};
  while (first_.contains(key)) {
    const std::shared_ptr<Event> other = first_[key];
    Event& done = *other;
    co_await done;
  }
  const auto done = std::make_shared<Event>(loop_);
  first_.emplace(key, done);
  const uint64_t tenure = TenureOf(key).since;
  std::vector<BlockId> wanted;
  for (const ManifestBlock& block : stripe.manifest.blocks) wanted.push_back(block.id);
  const auto run = co_await Load(key, wanted);
  Status outcome = run.status();
  if (run.ok()) {
    const bool stored = co_await IsStored(run.value(), stripe.manifest, wanted);
    if (stored) outcome = Status(Code::kConflict, "another writer stored these blocks first");
  }
  if (TenureOf(key).since != tenure) outcome = HasMoved();
  if (outcome.ok()) outcome = co_await Publish(std::move(stripe), durability);
  first_.erase(key);
  done->Set();
  co_return outcome;
}

Task<Status> HomeIndex::FileWithReplicas(const IndexedStripe& stripe, Durability durability) {
  const Manifest& manifest = stripe.manifest;
  const std::vector<TargetId> order = placement_.ReplicaOrder(manifest.space, manifest.run);
  const size_t wanted = std::min<size_t>(kIndexReplicas, order.size());
  Filing filing(placement_.Filled(manifest.space, manifest.run),
                std::min<size_t>(2, order.size()));
  size_t next = 0;
  while (!filing.enough() && next < order.size()) {
    std::vector<std::pair<TargetId, Task<Status>>> calls;
    while (next < order.size() && filing.acknowledged() + calls.size() < wanted) {
      const TargetId id = order[next++];
      TargetPort* port = targets_.Find(id);
      if (port == nullptr || !targets_.IsLive(id)) continue;
      calls.emplace_back(id, port->Publish(stripe, durability));
    }
    for (auto& [id, call] : calls) {
      const Status outcome = co_await call;
      targets_.Note(id, outcome);
      filing.Note(id, outcome);
    }
  }
  // Some replica lacks what it should have, or holds what lookups would not look for.
  if (filing.acknowledged() < wanted || next > wanted) Unsettle();
  co_return filing.outcome();
}

std::vector<TargetPort*> HomeIndex::RefilersOf(const StripeName& name) const {
  const std::vector<TargetId> order = placement_.ReplicaOrder(name.space, name.run);
  std::vector<TargetPort*> ports;
  for (size_t i = 0; i < order.size(); ++i) {
    TargetPort* port = targets_.Find(order[i]);
    if (port != nullptr && (i < kIndexReplicas || port->MayHaveFiled(name.stripe))) {
      ports.push_back(port);
    }
  }
  return ports;
}

Task<Status> HomeIndex::Adopt(TargetPort& from, StripeId stripe, uint64_t& adopted) {
  if (!IsHome(stripe)) co_return HasMoved();
  // What is going has perhaps left the replica here already, and `from` not yet.
  if (!adopting_.emplace(stripe, gone_.IsGoing(stripe)).second) co_return Status();
  Status outcome;
  auto found = co_await from.ReadFiled(stripe);
  if (found.ok()) {
    const Manifest manifest = found.value().manifest;
    const StripeName name{manifest.space, manifest.run, stripe};
    const bool lost = co_await targets_.IsLost(manifest);
    if (lost) {
      outcome = co_await from.Withdraw(name);
    } else if (!adopting_[stripe]) {
      outcome = co_await AdoptRead(std::move(found).value());
      if (outcome.ok()) ++adopted;
      // A removal began meanwhile, and may have passed the replica here before this was filed.
      if (adopting_[stripe]) outcome = co_await Remove(name, MissReason::kAbsent);
    }
  } else if (found.code() != Code::kNotFound) {  // Not withdrawn meanwhile.
    outcome = found.status();
  }
  adopting_.erase(stripe);
  co_return outcome;
}

Task<Status> HomeIndex::AdoptRead(IndexedStripe stripe) {
  const Manifest& manifest = stripe.manifest;
  const StripeId id = manifest.stripe;
  const bool busy = gone_.IsGoing(id) || publishing_.contains(id) || republishing_.contains(id);
  const bool over = clock_.UnixNow() >= stripe.expires_at || spaces_.IsDeleted(manifest.space);
  if (busy || over || StateOf(id)) co_return Status();
  if (!IsHome(id)) co_return HasMoved();
  const uint64_t tenure = TenureOf(id).since;
  const std::span<TargetPort* const> filers = placement_.FilersOf(id);
  publishing_.insert(id);
  Status outcome(Code::kUnavailable, "no target here takes index records");
  for (TargetPort* port : placement_.NearTargets()) {
    if (std::find(filers.begin(), filers.end(), port) == filers.end()) continue;
    outcome = co_await port->Publish(stripe, Durability::kProcess);
    if (TenureOf(id).since == tenure) break;
    // The new home may have removed it meanwhile. If not, it files it here again.
    const StripeName name{manifest.space, manifest.run, id};
    (void)co_await port->Withdraw(name);
    outcome = HasMoved();
    break;
  }
  publishing_.erase(id);
  if (!outcome.ok() || gone_.IsGoing(id)) co_return outcome;
  CountIn(id);
  const RunKey key{manifest.space, manifest.run};
  NoteChange(key);
  cache_.Add(key, std::move(stripe));
  co_return Status();
}

Task<Status> HomeIndex::Disown(TargetPort& from, StripeId stripe) {
  const auto name = co_await from.NameOf(stripe);
  if (name.code() == Code::kNotFound || name.code() == Code::kCorrupt) co_return Status();
  if (!name.ok()) co_return name.status();
  const bool is_ours = StateOf(stripe) || publishing_.contains(stripe) ||
                       republishing_.contains(stripe) || adopting_.contains(stripe);
  if (is_ours || !IsHome(stripe)) co_return Status();
  co_return co_await from.Withdraw(name.value());
}

Task<Status> HomeIndex::Republish(IndexedStripe stripe) {
  const Manifest& manifest = stripe.manifest;
  const StripeId id = manifest.stripe;
  const StripeName name{manifest.space, manifest.run, id};
  const uint64_t tenure = TenureOf(id).since;
  const StripeReport::Kind kind = ReportOn(id).kind;
  if (kind == StripeReport::Kind::kAbsent) co_return Status(Code::kNotFound);
  republishing_[id] = false;
  if (kind == StripeReport::Kind::kUnknown) {  // It may have been removed since it was read.
    const auto filed = co_await FindFiled(id);
    Status why = filed.status();
    if (republishing_[id]) why = Status(Code::kNotFound);
    if (TenureOf(id).since != tenure) why = HasMoved();
    if (!why.ok()) {
      republishing_.erase(id);
      co_return why;
    }
  }
  const std::vector<TargetPort*> ports = RefilersOf(name);
  Filing filing(placement_.Filled(name.space, name.run),
                std::min<size_t>(2, placement_.ReplicaOrder(name.space, name.run).size()));
  std::vector<Task<Status>> calls;
  for (TargetPort* port : ports) calls.push_back(port->Publish(stripe, Durability::kProcess));
  for (size_t i = 0; i < calls.size(); ++i) {
    Task<Status>& call = calls[i];
    const Status outcome = co_await call;
    targets_.Note(ports[i]->id(), outcome);
    filing.Note(ports[i]->id(), outcome);
  }
  const bool removed = republishing_[id];
  republishing_.erase(id);
  if (removed) {
    publishing_.insert(id);  // What was refiled is not counted.
    (void)co_await Remove(name, MissReason::kAbsent);
    publishing_.erase(id);
    co_return Status(Code::kNotFound);
  }
  if (TenureOf(id).since != tenure) co_return HasMoved();
  if (filing.acknowledged() < ports.size()) Unsettle();
  const RunKey key{name.space, name.run};
  NoteChange(key);
  cache_.Add(key, std::move(stripe));
  co_return filing.outcome();
}

}  // namespace cairn::kv
