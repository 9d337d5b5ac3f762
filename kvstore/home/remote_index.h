// The index of all runs of a cluster: each run is asked of its home, which may be this node itself.
//
// Cached runs may be up to `cache_age_max` old, and older ones come from a home that has lost its
// place. That can cost a hit, never a byte: a stripe's id is never used again, its shards carry it,
// and every block is checked against the checksum in the manifest. So an old manifest leads to the
// right bytes, or to targets that say they have no such shard: then the run is asked for again, and
// the read ends in a miss. A block that was deleted can be read for `cache_age_max` more.
//
// When the home cannot be reached the other replicas are read, in the same call: what they know may
// be served, but nothing is leased, published or removed until there is a home again.
#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "kvstore/async/gate.h"
#include "kvstore/client/home_index.h"
#include "kvstore/client/pace.h"
#include "kvstore/client/run_reader.h"
#include "kvstore/home/home_map.h"
#include "kvstore/home/index_peer.h"
#include "kvstore/home/messages.h"

namespace cairn::kv {

struct RemoteIndexOptions {
  uint64_t cache_bytes_max = 64 * kMiB;
  Nanos cache_age_max = Seconds(1);
  Nanos call_timeout = Millis(500);
  // Then its replicas are asked beside the home, for hits; at once where the home is slow (pace.h).
  Nanos late_after = Millis(40);
  PaceOptions pace = {.late_min = Millis(5)};
  Nanos avoid_for = Seconds(1);  // A home that did not answer is not asked again before.
};

// Loop thread only. All parts must outlive it.
class RemoteIndex final : public StripeIndex {
 public:
  struct Parts {
    Loop& loop;
    Clock& clock;
    Random& random;
    HomeMap& map;
    IndexPeer& peer;
    HomeIndex& own;  // For the runs that this node is the home of.
    TargetSet& targets;
    const Placement& placement;
  };
  RemoteIndex(Parts parts, RemoteIndexOptions options);

  // A put that another node's put has overtaken ends with kConflict: all its blocks are there.
  Task<Status> Publish(IndexedStripe stripe, Durability durability) override;
  Task<Status> Republish(IndexedStripe stripe) override;
  Task<Status> Remove(StripeName name, MissReason reason) override;
  Task<Result<KnownRunPtr>> Load(RunKey key, std::span<const BlockId> wanted) override;
  Task<Result<KnownRunPtr>> LoadAll(RunKey key) override;
  Task<Result<KnownRunPtr>> LoadFiled(RunKey key) override;
  const RunJudge& judge() const override { return parts_.own.judge(); }
  Task<std::vector<StripeReport>> StatesOf(std::vector<StripeId> stripes) override;
  Task<Result<StripeName>> NameOf(StripeId stripe) override;
  void Touch(KnownStripe& stripe) override;
  void NoteLacking(StripeId stripe) override;
  Task<Status> Keep(KnownStripePtr stripe, uint32_t keep_until, KeepLimits limits) override;
  SessionId OpenSession() override { return parts_.own.OpenSession(); }
  void EndSession(SessionId session) override;
  // All that was asked for, or no lease.
  Task<LeaseGrant> Grant(std::vector<LeaseTable::Stripe> stripes, LeaseOrder order) override;
  Task<std::vector<Status>> Renew(std::vector<LeaseId> leases, LeaseOrder order) override;
  Task<Status> Release(std::vector<LeaseId> leases, SessionId session) override;

  // Tells homes what was used, and what lacks shards, since the last call: call it every so often.
  Task<void> SendUse();
  // Nothing more may be asked; resolves when nothing is in flight on its own account.
  Task<void> Stop() { return background_.Close(); }

  uint64_t memory_bytes() const { return cache_.memory_bytes(); }

 private:
  // A lease here is one at each of some homes.
  struct Part {
    NodeId home;
    LeaseId lease;
  };
  struct Lease {
    SessionId session;
    Instant until;
    std::vector<Part> parts;
  };
  bool IsOwn(uint16_t group_hash) const { return HomeOf(group_hash) == parts_.map.self(); }
  NodeId HomeOf(uint16_t group_hash) const { return parts_.map.HomeOf(group_hash); }
  // Calls the home; kUnavailable when there is none, or it has not answered lately.
  template <typename Answer, typename Message>
  Task<Result<Answer>> Ask(NodeId home, home::Verb verb, Message message);
  // The same of whoever is the home: again when it turns out to be another node meanwhile.
  template <typename Answer, typename Message>
  Task<Result<Answer>> AskHome(uint16_t group_hash, home::Verb verb, Message message);

  struct Loading;
  Task<Result<KnownRunPtr>> LoadAnew(RunKey key, std::span<const BlockId> wanted,
                                     home::Extent extent);
  Nanos PatienceWith(NodeId home) const;
  // From the other replicas: all of `wanted`, or null.
  Task<KnownRunPtr> FindBesideHome(RunKey key, std::span<const BlockId> wanted);
  // Into `loading`, if that is sooner than the home's answer.
  Task<void> FindInto(std::shared_ptr<Loading> loading, RunKey key, std::vector<BlockId> wanted);
  Task<void> AskInto(std::shared_ptr<Loading> loading, home::LoadRequest request);
  KnownRun Learn(const RunKey& key, std::span<const BlockId> wanted, home::LoadAnswer answer);
  Task<void> AskStates(NodeId home, const std::vector<StripeId>& stripes,
                       std::vector<size_t> places, std::vector<StripeReport>& reports);
  Task<LeaseGrant> GrantAt(NodeId home, std::vector<LeaseTable::Stripe> stripes, LeaseOrder order);
  Task<std::vector<Status>> RenewAt(NodeId home, std::vector<LeaseId> leases, LeaseOrder order);
  Task<void> ReleaseAt(NodeId home, std::vector<LeaseId> leases, SessionId session);
  Task<void> EndSessionAt(NodeId home, SessionId session);
  Task<void> ReleaseParts(std::vector<Part> parts, SessionId session);
  LeaseId Remember(SessionId session, Instant until, std::vector<Part> parts);
  void ForgetOver();

  Parts parts_;
  const RemoteIndexOptions options_;
  RunReader reader_;
  RunCache cache_;
  std::map<NodeId, Instant> avoid_until_;
  PaceOf<NodeId> pace_;  // Of homes that are asked for runs.
  std::map<StripeId, home::UseRequest::Hit> used_;  // Not told yet; bounded.
  LackingStripes lacking_;                          // Not told yet.
  std::map<LeaseId, Lease> leases_;
  std::set<std::pair<Instant, LeaseId>> ends_;
  std::map<SessionId, std::set<NodeId>> homes_;  // Where each session may have leases.
  Gate background_;
};

}  // namespace cairn::kv
