// Leases by id and by deadline; stripes by how many leases name them.
#include "kvstore/client/lease_table.h"

#include <algorithm>

#include "kvstore/base/check.h"

namespace cairn::kv {
namespace {

// A node of a std::map, std::set or std::unordered_map, without its value.
constexpr uint64_t kNode = 40;

}  // namespace

SessionId LeaseTable::OpenSession() {
  SessionId session;
  do {
    session.value = random_.Next();
  } while (session.value == 0 || sessions_.contains(session));
  sessions_.try_emplace(session);
  return session;
}

void LeaseTable::EndSession(SessionId session, Instant now) {
  Expire(now);
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  const std::set<LeaseId> leases = std::move(found->second);
  sessions_.erase(found);
  for (const LeaseId& lease : leases) {
    Drop(leases_.find(lease));
    ++stats_.ended;
  }
}

LeaseId LeaseTable::Grant(SessionId session, const std::vector<Stripe>& stripes, Nanos duration,
                          Instant end, Instant now) {
  Expire(now);
  const auto owner = sessions_.find(session);
  if (session.value != 0 && owner == sessions_.end()) return {};
  if (stripes.empty() || duration.value <= 0 || end <= now) return {};
  if (leases_.size() >= limits_.leases_max ||
      references_ + stripes.size() > limits_.stripes_max ||
      BytesAdded(stripes) > limits_.bytes_max - std::min(stats_.bytes, limits_.bytes_max)) {
    ++stats_.refused;
    return {};
  }
  LeaseId id;
  do {
    id.value = random_.Next();
  } while (id.value == 0 || leases_.contains(id));
  Lease& lease = leases_[id];
  lease = {.session = session,
           .deadline = std::min(end, now + duration),
           .end = end,
           .stripes = {}};
  for (const Stripe& stripe : stripes) {
    lease.stripes.push_back(stripe.id);
    Held& held = held_[stripe.id];
    if (held.leases++ > 0) continue;
    held.bytes = stripe.bytes;
    stats_.bytes += stripe.bytes;
  }
  references_ += stripes.size();
  deadlines_.emplace(lease.deadline, id);
  if (owner != sessions_.end()) owner->second.insert(id);
  ++stats_.granted;
  return id;
}

uint64_t LeaseTable::BytesAdded(const std::vector<Stripe>& stripes) const {
  uint64_t bytes = 0;
  for (const Stripe& stripe : stripes) {
    if (!held_.contains(stripe.id)) bytes += stripe.bytes;
  }
  return bytes;
}

Status LeaseTable::Renew(LeaseId id, SessionId session, Nanos duration, Instant now) {
  const auto found = Find(id, session, now);
  if (found == leases_.end()) return Status(Code::kNotFound, "the lease ended: look up again");
  Lease& lease = found->second;
  deadlines_.erase({lease.deadline, id});
  lease.deadline = std::min(lease.end, now + duration);
  deadlines_.emplace(lease.deadline, id);
  return Status();
}

void LeaseTable::Release(LeaseId id, SessionId session, Instant now) {
  const auto found = Find(id, session, now);
  if (found == leases_.end()) return;
  const auto owner = sessions_.find(session);
  if (owner != sessions_.end()) owner->second.erase(id);
  Drop(found);
}

LeaseTable::Leases::iterator LeaseTable::Find(LeaseId id, SessionId session, Instant now) {
  Expire(now);
  const auto found = leases_.find(id);
  const bool is_owner = found != leases_.end() && found->second.session == session;
  return is_owner ? found : leases_.end();
}

bool LeaseTable::IsLeased(StripeId stripe, Instant now) {
  Expire(now);
  return held_.contains(stripe);
}

std::span<const StripeId> LeaseTable::StripesOf(LeaseId lease) const {
  const auto found = leases_.find(lease);
  if (found == leases_.end()) return {};
  return found->second.stripes;
}

void LeaseTable::Forget(StripeId stripe) {
  const auto found = held_.find(stripe);
  if (found == held_.end()) return;
  stats_.bytes -= found->second.bytes;
  held_.erase(found);  // Its leases find out when they end.
}

Nanos LeaseTable::Left(LeaseId lease, Instant now) {
  Expire(now);
  const auto found = leases_.find(lease);
  return found == leases_.end() ? Nanos{} : found->second.deadline - now;
}

const LeaseStats& LeaseTable::Stats(Instant now) {
  Expire(now);
  stats_.active = leases_.size();
  return stats_;
}

uint64_t LeaseTable::memory_bytes() const {
  // A lease is in three trees.
  return leases_.size() * (sizeof(Lease) + 3 * (kNode + sizeof(LeaseId)) + sizeof(Instant)) +
         references_ * sizeof(StripeId) + held_.size() * (sizeof(StripeId) + sizeof(Held) + kNode) +
         sessions_.size() * (sizeof(std::set<LeaseId>) + kNode);
}

void LeaseTable::Expire(Instant now) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const auto found = leases_.find(deadlines_.begin()->second);
    const auto owner = sessions_.find(found->second.session);
    if (owner != sessions_.end()) owner->second.erase(found->first);
    Drop(found);
    ++stats_.expired;
  }
}

void LeaseTable::Drop(Leases::iterator found) {
  KV_CHECK(found != leases_.end());
  const Lease& lease = found->second;
  for (const StripeId& stripe : lease.stripes) {
    const auto held = held_.find(stripe);
    if (held == held_.end() || --held->second.leases > 0) continue;
    stats_.bytes -= held->second.bytes;
    held_.erase(held);
  }
  references_ -= lease.stripes.size();
  deadlines_.erase({lease.deadline, found->first});
  leases_.erase(found);
}

}  // namespace cairn::kv
