// Walks the targets' tables page by page, and removes by hand what it chose.
#include "kvstore/client/space_sweeper.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace cairn::kv {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kVisitsMax = 4 * kPage;    // Of one SweepDeleted.
constexpr size_t kRemovalsMax = 256;        // Of one SweepDeleted.
constexpr size_t kRemovalsAtOnce = 16;
// So many are found in one walk over all that is filed: at least the first, at most this share.
constexpr size_t kCandidatesMin = 1024;
constexpr size_t kCandidatesShare = 32;

uint32_t Seconds32(UnixMillis at) { return static_cast<uint32_t>(at.value / 1000); }

}  // namespace

SpaceSweeper::SpaceSweeper(Parts parts)
    : parts_(parts), given_back_(std::make_shared<Event>(parts.loop)) {}

Task<Status> SpaceSweeper::CountAll() {
  for (size_t place = 0; PortAt(place) != nullptr; ++place) {
    std::optional<StripeId> after;
    while (true) {
      const auto page = co_await PortAt(place)->ListFiled(after, kPage);
      KV_CO_RETURN_IF_ERROR(page.status());
      for (const TargetPort::Filed& filed : page.value()) {
        if (IsNew(place, filed.stripe)) parts_.index.CountIn(filed.stripe);
      }
      if (page.value().size() < kPage) break;
      after = page.value().back().stripe;
    }
  }
  co_return Status();
}

TargetPort* SpaceSweeper::PortAt(size_t place) const {
  const std::span<TargetPort* const> ports = parts_.placement.NearTargets();
  return place < ports.size() ? ports[place] : nullptr;
}

bool SpaceSweeper::IsNew(size_t place, StripeId stripe) const {
  const std::span<TargetPort* const> before = parts_.placement.NearTargets().first(place);
  return parts_.index.IsHome(stripe) &&
         std::none_of(before.begin(), before.end(),
                      [&](const TargetPort* port) { return port->MayHaveFiled(stripe); });
}

// --- Quotas ---

uint64_t SpaceSweeper::Lacking(NamespaceId space, uint64_t quota, uint64_t payload) {
  const uint32_t now = Seconds32(parts_.clock.UnixNow());
  const uint64_t wanted = parts_.ledger.UsageOf(space, now).stored_bytes +
                          parts_.ledger.Elsewhere(space) +
                          parts_.ledger.Reserved(space) + payload;
  return wanted - std::min(wanted, quota);
}

Task<Status> SpaceSweeper::TakeRoom(NamespaceId space, uint64_t quota, uint64_t payload) {
  if (quota > 0 && payload > quota) {
    co_return Status(Code::kNoSpace, std::to_string(payload) +
                                         " bytes are more than the namespace's quota of " +
                                         std::to_string(quota));
  }
  while (quota > 0 && !Fits(space, quota, payload)) {
    const std::shared_ptr<Event> running = evictions_[space].running;
    if (running != nullptr) {
      Event& done = *running;
      co_await done;
      if (Fits(space, quota, payload)) break;
    }
    if (evictions_[space].running == nullptr) co_await Evict(space, quota, payload);
    if (Fits(space, quota, payload)) break;
    if (parts_.ledger.Reserved(space) == 0) {
      co_return Status(Code::kOverloaded,
                       "the namespace is at its quota, and all in it is leased or kept");
    }
    // What is on its way can be evicted once it is there.
    const std::shared_ptr<Event> given_back = given_back_;
    Event& event = *given_back;
    co_await event;
  }
  parts_.ledger.Reserve(space, payload);
  co_return Status();
}

void SpaceSweeper::GiveBack(NamespaceId space, uint64_t payload) {
  parts_.ledger.Unreserve(space, payload);
  const std::shared_ptr<Event> given_back =
      std::exchange(given_back_, std::make_shared<Event>(parts_.loop));
  given_back->Set();
}

Task<void> SpaceSweeper::Evict(NamespaceId space, uint64_t quota, uint64_t payload) {
  Eviction& eviction = evictions_[space];  // A std::map: stays where it is.
  eviction.running = std::make_shared<Event>(parts_.loop);
  // A little more than needed, so that the next puts find room.
  const uint64_t wanted = std::min(quota, payload + quota / 32);
  uint32_t failures = 0;
  while (failures < 2) {
    const uint64_t lacking = Lacking(space, quota, wanted);
    if (lacking == 0) break;
    if (eviction.coldest.empty()) co_await Collect(space, eviction);
    if (eviction.coldest.empty()) break;
    const bool removed = co_await EvictSome(eviction, lacking);
    failures = removed ? 0 : failures + 1;
  }
  std::exchange(eviction.running, nullptr)->Set();
}

Task<bool> SpaceSweeper::EvictSome(Eviction& eviction, uint64_t bytes) {
  std::vector<Task<bool>> removals;
  uint64_t chosen = 0;
  while (!eviction.coldest.empty() && removals.size() < kRemovalsAtOnce && chosen < bytes) {
    const Candidate candidate = eviction.coldest.back();
    eviction.coldest.pop_back();
    const std::optional<StripeState> state = parts_.index.StateOf(candidate.stripe);
    if (!state || state->last_access != candidate.last_access) continue;  // Gone, or used since.
    chosen += state->payload_bytes;
    removals.push_back(RemoveOne(candidate.stripe, MissReason::kEvicted));
  }
  bool any = false;
  for (Task<bool>& removal : removals) {
    const bool removed = co_await removal;
    any = any || removed;
    quota_evictions_ += removed ? 1 : 0;
  }
  co_return any;
}

Task<void> SpaceSweeper::Collect(NamespaceId space, Eviction& eviction) {
  // Colder ones compare greater: the heap's top is the warmest that was chosen.
  const auto is_colder = [](const Candidate& a, const Candidate& b) {
    return std::tuple(a.last_access, ~a.position, a.stripe) <
           std::tuple(b.last_access, ~b.position, b.stripe);
  };
  const uint64_t stripes =
      parts_.ledger.UsageOf(space, Seconds32(parts_.clock.UnixNow())).stripes;
  const size_t wanted = std::max<size_t>(kCandidatesMin, stripes / kCandidatesShare);
  std::vector<Candidate> chosen;
  for (size_t place = 0; PortAt(place) != nullptr; ++place) {
    std::optional<StripeId> after;
    while (true) {
      const auto page = co_await PortAt(place)->ListFiled(after, kPage);
      if (!page.ok() || page.value().empty()) break;
      after = page.value().back().stripe;
      for (const TargetPort::Filed& filed : page.value()) {
        if (filed.state.space != space || !IsNew(place, filed.stripe)) continue;
        if (parts_.index.IsHeld(filed.stripe)) continue;
        chosen.push_back({filed.stripe, filed.state.last_access, filed.state.position});
        std::push_heap(chosen.begin(), chosen.end(), is_colder);
        if (chosen.size() <= wanted) continue;
        std::pop_heap(chosen.begin(), chosen.end(), is_colder);
        chosen.pop_back();
      }
      if (page.value().size() < kPage) break;
      co_await Pause();
    }
  }
  std::sort(chosen.begin(), chosen.end(), is_colder);
  std::reverse(chosen.begin(), chosen.end());
  eviction.coldest = std::move(chosen);
}

// --- Deleted namespaces ---

Task<void> SpaceSweeper::SweepDeleted() {
  dirty_ = dirty_ && parts_.registry.any_deleted();
  if (!dirty_) co_return;
  if (place_ == 0 && !after_) {
    pass_found_ = false;
    pass_is_whole_ = true;
  }
  std::vector<StripeId> doomed;
  size_t visited = 0;
  while (PortAt(place_) != nullptr && visited < kVisitsMax && doomed.size() < kRemovalsMax) {
    const auto page = co_await PortAt(place_)->ListFiled(after_, kPage);
    if (!page.ok()) pass_is_whole_ = false;
    const bool is_last = !page.ok() || page.value().size() < kPage;
    bool stopped = false;
    if (page.ok()) {
      for (const TargetPort::Filed& filed : page.value()) {
        if (doomed.size() >= kRemovalsMax) {
          stopped = true;
          break;
        }
        after_ = filed.stripe;
        ++visited;
        if (!parts_.registry.IsDeleted(filed.state.space)) continue;
        if (!parts_.index.IsHome(filed.stripe)) continue;
        pass_found_ = true;
        if (IsNew(place_, filed.stripe)) doomed.push_back(filed.stripe);
      }
    }
    if (stopped || !is_last) continue;
    ++place_;
    after_.reset();
  }
  for (size_t begin = 0; begin < doomed.size(); begin += kRemovalsAtOnce) {
    std::vector<Task<bool>> removals;
    const size_t end = std::min(doomed.size(), begin + kRemovalsAtOnce);
    for (size_t i = begin; i < end; ++i) {
      removals.push_back(RemoveOne(doomed[i], MissReason::kAbsent));
    }
    for (Task<bool>& removal : removals) {
      const bool removed = co_await removal;
      parts_.stats.deleted_stripes += removed ? 1 : 0;
    }
  }
  if (PortAt(place_) != nullptr) co_return;
  place_ = 0;
  // Clean when a whole pass found nothing.
  dirty_ = pass_found_ || !pass_is_whole_;
}

Task<bool> SpaceSweeper::RemoveOne(StripeId stripe, MissReason reason) {
  const auto name = co_await parts_.index.NameOf(stripe);
  if (!name.ok()) co_return false;
  const Status removed = co_await parts_.index.Remove(name.value(), reason);
  co_return removed.code() != Code::kConflict;  // Of anything else nothing can be seen any more.
}

Task<void> SpaceSweeper::Pause() {
  const Instant now = parts_.clock.Now();
  co_await parts_.clock.SleepUntil(now, nullptr);
}

}  // namespace cairn::kv
