// All that a store asks of the index: where the blocks of a run are, and what is promised of them.
//
// A run has one home, which alone publishes, removes, leases and refreshes its stripes. HomeIndex
// is that home; whoever serves runs of several homes asks each through RemoteIndex (kvstore/home).
// What an index says of a run may be old: a block is served only when its bytes have the checksum
// that the manifest gives it, and a stripe's id is never used again. So an old answer is a miss or
// the right bytes, never wrong ones.
#pragma once

#include <span>
#include <vector>

#include "kvstore/client/lease_table.h"
#include "kvstore/client/run_judge.h"
#include "kvstore/client/space_ledger.h"

namespace cairn::kv {

// What is known of one stripe.
struct StripeReport {
  enum class Kind : uint8_t {
    kFiled,
    kAbsent,   // In no replica, or being removed.
    kUnknown,  // Nobody who knows can be asked now: it may be filed.
  };
  Kind kind = Kind::kUnknown;
  bool held = false;       // Of a filed one: leased, or under a keep_until. Not to be evicted.
  StripeState state = {};  // Of a filed one.
};

struct LeaseGrant {
  LeaseId lease;       // 0: none.
  Nanos left;          // From now on.
  std::vector<StripeId> gone;  // Of those asked for: not there any more, and not leased.
};

// Loop thread only. Any call may end with kUnavailable or kDeadline when the home cannot be
// reached: then it may have been carried out or not.
class StripeIndex {
 public:
  virtual ~StripeIndex() = default;

  // --- Writing ---
  // Files the stripe with the replicas of its run: ok once 2 of them have it (or all, where there
  // are fewer targets). kConflict: all its blocks are there already, whole, from another node;
  // kNotFound: its namespace was deleted meanwhile; kInvalid: it may not be filed. After any other
  // failure it may be filed or not, now or a little later: its shards must stay. Publishing it once
  // more is harmless.
  virtual Task<Status> Publish(IndexedStripe stripe, Durability durability) = 0;
  // Files a stripe that is filed already with a manifest of a higher generation. Ok once 2 of its
  // replicas (or all) have it; kNotFound when it is removed, or was meanwhile. On other failures it
  // is filed as before, or anew, with some of them.
  virtual Task<Status> Republish(IndexedStripe stripe) = 0;
  // Takes the stripe out of every replica, then its shards off the targets, and remembers why.
  // Reads in flight end with exact bytes or a miss. kConflict: nothing was done, because the reason
  // is kEvicted and the stripe is held. kUnavailable: a replica, or where stripes are recovered
  // from shards a target with one, did not take the removal, and may bring the stripe back.
  virtual Task<Status> Remove(StripeName name, MissReason reason) = 0;

  // --- Reading ---
  // The run as far as it is needed to find `wanted`, which must live until the task is done. Fails
  // with kUnavailable when no replica answers.
  virtual Task<Result<KnownRunPtr>> Load(RunKey key, std::span<const BlockId> wanted) = 0;
  // All that any replica knows of it: what Load found lies on targets that fail.
  virtual Task<Result<KnownRunPtr>> LoadAll(RunKey key) = 0;
  // For who deletes: the same, and what no lookup shows yet because too few replicas have it.
  virtual Task<Result<KnownRunPtr>> LoadFiled(RunKey key) = 0;
  virtual const RunJudge& judge() const = 0;
  // One for each stripe, in order.
  virtual Task<std::vector<StripeReport>> StatesOf(std::vector<StripeId> stripes) = 0;
  // Under which run it is filed. kNotFound when no replica has a whole record of it; kUnavailable
  // when one that may have it could not be asked.
  virtual Task<Result<StripeName>> NameOf(StripeId stripe) = 0;

  // --- Use ---
  // A hit: moves recency and, by class, expiry; of what is known here at once, at the home soon.
  virtual void Touch(KnownStripe& stripe) = 0;
  // It was published with fewer shards than it should have: its home makes it whole when it can.
  virtual void NoteLacking(StripeId stripe) = 0;
  // Promises to keep the stripe until then (seconds since 1970), on its replicas: survives a
  // restart. kOverloaded when the limits do not allow it; kNotFound when it is gone.
  virtual Task<Status> Keep(KnownStripePtr stripe, uint32_t keep_until, KeepLimits limits) = 0;

  // --- Leases: what lease_table.h says ---
  virtual SessionId OpenSession() = 0;
  virtual void EndSession(SessionId session) = 0;
  // A lease on those stripes that are there, until the first of them expires. `stripes` are
  // distinct.
  virtual Task<LeaseGrant> Grant(std::vector<LeaseTable::Stripe> stripes, LeaseOrder order) = 0;
  virtual Task<std::vector<Status>> Renew(std::vector<LeaseId> leases, LeaseOrder order) = 0;
  virtual Task<Status> Release(std::vector<LeaseId> leases, SessionId session) = 0;
};

}  // namespace cairn::kv
