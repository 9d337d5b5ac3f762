// Leases over several homes: one here stands for one at each.
#include <algorithm>
#include <utility>

#include "kvstore/home/remote_call.h"
#include "kvstore/home/tenure_table.h"

namespace cairn::kv {

using home::Empty;
using home::Verb;

Task<LeaseGrant> RemoteIndex::Grant(std::vector<LeaseTable::Stripe> stripes, LeaseOrder order) {
  ForgetOver();
  order.duration = std::min(order.duration, kHomeLeaseMax);
  std::map<NodeId, std::vector<LeaseTable::Stripe>> by_home;
  for (const LeaseTable::Stripe& stripe : stripes) {
    by_home[HomeOf(GroupHashOf(stripe.id))].push_back(stripe);
  }
  std::vector<Task<LeaseGrant>> calls;
  for (const auto& [home, part] : by_home) calls.push_back(GrantAt(home, part, order));
  LeaseGrant grant{.lease = {}, .left = order.duration, .gone = {}};
  std::vector<Part> parts;
  bool refused = false;
  size_t next = 0;
  for (const auto& [home, part] : by_home) {
    Task<LeaseGrant>& call = calls[next++];
    const LeaseGrant one = co_await call;
    grant.gone.insert(grant.gone.end(), one.gone.begin(), one.gone.end());
    if (one.lease == LeaseId{}) {
      refused = refused || one.gone.size() < part.size();
      continue;
    }
    grant.left = std::min(grant.left, one.left);
    parts.push_back({home, one.lease});
  }
  if (refused || parts.empty()) {
    if (!parts.empty()) background_.Hold(ReleaseParts(std::move(parts), order.session));
    grant.left = {};
    co_return std::move(grant);
  }
  for (const Part& part : parts) homes_[order.session].insert(part.home);
  grant.lease = Remember(order.session, parts_.clock.Now() + grant.left, std::move(parts));
  co_return std::move(grant);
}

LeaseId RemoteIndex::Remember(SessionId session, Instant until, std::vector<Part> parts) {
  LeaseId id{parts_.random.Next()};
  while (id == LeaseId{} || leases_.contains(id)) id = {parts_.random.Next()};
  leases_.emplace(id, Lease{.session = session, .until = until, .parts = std::move(parts)});
  ends_.emplace(until, id);
  return id;
}

void RemoteIndex::ForgetOver() {
  while (!ends_.empty() && ends_.begin()->first <= parts_.clock.Now()) {
    leases_.erase(ends_.begin()->second);
    ends_.erase(ends_.begin());
  }
}

Task<LeaseGrant> RemoteIndex::GrantAt(NodeId home, std::vector<LeaseTable::Stripe> stripes,
                                      LeaseOrder order) {
  if (home == parts_.map.self()) {
    co_return co_await parts_.own.Grant(std::move(stripes), order);
  }
  // More than a message takes are more than a lease should cover.
  if (stripes.size() > home::kStripesMax) co_return LeaseGrant{};
  home::GrantRequest request{.session = order.session.value, .duration = order.duration};
  request.stripes = std::move(stripes);
  auto answer = co_await Ask<home::GrantAnswer>(home, Verb::kGrant, std::move(request));
  if (!answer.ok()) co_return LeaseGrant{};
  co_return std::move(answer.value().grant);
}

Task<std::vector<Status>> RemoteIndex::Renew(std::vector<LeaseId> leases, LeaseOrder order) {
  ForgetOver();
  order.duration = std::min(order.duration, kHomeLeaseMax);
  std::vector<Status> outcomes(leases.size());
  std::map<NodeId, std::vector<LeaseId>> asked;    // At each home...
  std::map<NodeId, std::vector<size_t>> places;    // ...and for which of `leases`.
  for (size_t i = 0; i < leases.size(); ++i) {
    const auto known = leases_.find(leases[i]);
    if (known == leases_.end() || known->second.session != order.session) {
      outcomes[i] = Status(Code::kNotFound);
      continue;
    }
    for (const Part& part : known->second.parts) {
      asked[part.home].push_back(part.lease);
      places[part.home].push_back(i);
    }
  }
  std::vector<Task<std::vector<Status>>> calls;
  for (const auto& [home, parts] : asked) calls.push_back(RenewAt(home, parts, order));
  size_t next = 0;
  for (const auto& [home, at] : places) {
    Task<std::vector<Status>>& call = calls[next++];
    const std::vector<Status> renewed = co_await call;
    for (size_t i = 0; i < at.size(); ++i) {
      if (!renewed[i].ok()) outcomes[at[i]] = renewed[i];
    }
  }
  const Instant until = parts_.clock.Now() + order.duration;
  for (size_t i = 0; i < leases.size(); ++i) {
    const auto known = leases_.find(leases[i]);
    if (!outcomes[i].ok() || known == leases_.end()) continue;
    ends_.erase({known->second.until, known->first});
    known->second.until = until;
    ends_.emplace(until, known->first);
  }
  co_return std::move(outcomes);
}

Task<std::vector<Status>> RemoteIndex::RenewAt(NodeId home, std::vector<LeaseId> leases,
                                               LeaseOrder order) {
  if (home == parts_.map.self()) {
    co_return co_await parts_.own.Renew(std::move(leases), order);
  }
  std::vector<Status> outcomes(leases.size(), Status(Code::kUnavailable, "the home is away"));
  home::RenewRequest request{.session = order.session.value, .duration = order.duration};
  request.leases = std::move(leases);
  const auto answer = co_await Ask<home::RenewAnswer>(home, Verb::kRenew, std::move(request));
  if (!answer.ok() || answer.value().codes.size() != outcomes.size()) {
    co_return std::move(outcomes);
  }
  for (size_t i = 0; i < outcomes.size(); ++i) outcomes[i] = Status(answer.value().codes[i]);
  co_return std::move(outcomes);
}

Task<Status> RemoteIndex::Release(std::vector<LeaseId> leases, SessionId session) {
  std::vector<Part> parts;
  for (const LeaseId& lease : leases) {
    const auto known = leases_.find(lease);
    if (known == leases_.end() || known->second.session != session) continue;
    parts.insert(parts.end(), known->second.parts.begin(), known->second.parts.end());
    ends_.erase({known->second.until, lease});
    leases_.erase(known);
  }
  co_await ReleaseParts(std::move(parts), session);
  co_return Status();
}

// At a home that cannot be reached they end by the clock.
Task<void> RemoteIndex::ReleaseParts(std::vector<Part> parts, SessionId session) {
  std::map<NodeId, std::vector<LeaseId>> by_home;
  for (const Part& part : parts) by_home[part.home].push_back(part.lease);
  for (auto& [home, leases] : by_home) {
    if (home == parts_.map.self()) {
      (void)co_await parts_.own.Release(std::move(leases), session);
      continue;
    }
    home::ReleaseRequest request{.session = session.value};
    request.leases = std::move(leases);
    (void)co_await Ask<Empty>(home, Verb::kRelease, std::move(request));
  }
}

void RemoteIndex::EndSession(SessionId session) {
  parts_.own.EndSession(session);
  std::erase_if(leases_, [&](const auto& lease) {
    if (lease.second.session != session) return false;
    ends_.erase({lease.second.until, lease.first});
    return true;
  });
  const auto used = homes_.find(session);
  if (used == homes_.end()) return;
  for (const NodeId home : used->second) {
    if (home != parts_.map.self()) background_.Hold(EndSessionAt(home, session));
  }
  homes_.erase(used);
}

Task<void> RemoteIndex::EndSessionAt(NodeId home, SessionId session) {
  const home::EndSessionRequest request{.session = session.value};
  (void)co_await Ask<Empty>(home, Verb::kEndSession, request);
}

}  // namespace cairn::kv
