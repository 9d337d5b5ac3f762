// Leases: promises not to evict stripes until a deadline, each owned by a session. Pure, bounded.
//
// The clock alone ends a lease: every call first forgets those whose deadline has passed, so that
// nothing has to sweep, and nothing leaks when nobody releases. See docs/decisions/0006-leases.md.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kvstore/base/random.h"
#include "kvstore/base/status.h"
#include "kvstore/base/time.h"
#include "kvstore/client/block_store.h"

namespace cairn::kv {

struct LeaseLimits {
  uint32_t leases_max = 65536;
  uint32_t stripes_max = 1 << 20;   // Under leases, each counted once a lease.
  uint64_t bytes_max = UINT64_MAX;  // Of the stripes under any lease, each counted once.
};

struct LeaseStats {
  uint64_t active = 0;
  uint64_t bytes = 0;    // Of the stripes under any lease, each counted once.
  uint64_t granted = 0;  // Since the start, as all below.
  uint64_t refused = 0;  // A limit was in the way.
  uint64_t expired = 0;  // Ended by their deadline: their owners never released them.
  uint64_t ended = 0;    // Ended with their session.
};

// Not thread-safe. `random` must outlive it.
class LeaseTable {
 public:
  struct Stripe {
    StripeId id;
    uint64_t bytes = 0;  // What it occupies.
  };

  LeaseTable(Random& random, LeaseLimits limits) : random_(random), limits_(limits) {}

  SessionId OpenSession();
  // Releases all that the session holds. Fine when it ended already.
  void EndSession(SessionId session, Instant now);

  // A lease on the stripes for `duration`, but never beyond `end`: the first of their expiries.
  // LeaseId 0 when a limit is in the way (`refused` counts it) or there is nothing to lease; also
  // for a session that has ended or never was.
  LeaseId Grant(SessionId session, const std::vector<Stripe>& stripes, Nanos duration, Instant end,
                Instant now);
  // From `now` on, as Grant. kNotFound when it ended or belongs to another session.
  Status Renew(LeaseId lease, SessionId session, Nanos duration, Instant now);
  // Nothing happens when it ended or belongs to another session.
  void Release(LeaseId lease, SessionId session, Instant now);

  bool IsLeased(StripeId stripe, Instant now);
  // Until the next call that changes something; none when it ended.
  std::span<const StripeId> StripesOf(LeaseId lease) const;
  // The stripe is gone all the same (deleted, expired): it no longer counts.
  void Forget(StripeId stripe);

  // What is left of the lease; 0 when it ended.
  Nanos Left(LeaseId lease, Instant now);
  const LeaseStats& Stats(Instant now);
  uint64_t memory_bytes() const;

 private:
  struct Lease {
    SessionId session;
    Instant deadline;
    Instant end;
    std::vector<StripeId> stripes;
  };
  struct Held {
    uint32_t leases = 0;
    uint64_t bytes = 0;
  };
  using Leases = std::map<LeaseId, Lease>;

  void Expire(Instant now);
  void Drop(Leases::iterator lease);
  // End when it ended or belongs to another session.
  Leases::iterator Find(LeaseId lease, SessionId session, Instant now);
  uint64_t BytesAdded(const std::vector<Stripe>& stripes) const;

  Random& random_;
  const LeaseLimits limits_;
  LeaseStats stats_;
  Leases leases_;
  std::set<std::pair<Instant, LeaseId>> deadlines_;
  std::map<SessionId, std::set<LeaseId>> sessions_;  // Open ones, but for session 0.
  std::unordered_map<StripeId, Held, IdHash> held_;
  uint64_t references_ = 0;  // The stripes of all leases.
};

}  // namespace cairn::kv
