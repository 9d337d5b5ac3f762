// The index as the home of its runs keeps it: files, reads and remembers them, and answers for
// their stripes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "kvstore/async/event.h"
#include "kvstore/client/filed_stripe.h"
#include "kvstore/client/home_tenure.h"
#include "kvstore/client/lacking_stripes.h"
#include "kvstore/client/run_reader.h"
#include "kvstore/client/space_registry.h"
#include "kvstore/client/store_stats.h"
#include "kvstore/client/stripe_index.h"
#include "kvstore/types/group_hash.h"

namespace cairn::kv {

// Loop thread only. Everything passed in must outlive it. What StripeIndex promises, and:
// StatesOf, Grant, Renew and Release never suspend; a lease is given, and Remove asks for leases,
// in one step with what makes the stripe visible or not.
class HomeIndex final : public StripeIndex {
 public:
  struct Parts {
    Loop& loop;
    Clock& clock;
    TargetSet& targets;
    const Placement& placement;
    const HomeTenure& tenure;
    StoreStats& stats;
    LeaseTable& leases;
    const SpaceRegistry& spaces;
    SpaceLedger& ledger;
  };
  HomeIndex(Parts parts, uint64_t cache_bytes_max);

  Task<Status> Publish(IndexedStripe stripe, Durability durability) override;
  Task<Status> Republish(IndexedStripe stripe) override;
  Task<Status> Remove(StripeName name, MissReason reason) override;
  Task<Result<KnownRunPtr>> Load(RunKey key, std::span<const BlockId> wanted) override;
  Task<Result<KnownRunPtr>> LoadAll(RunKey key) override;
  Task<Result<KnownRunPtr>> LoadFiled(RunKey key) override;
  const RunJudge& judge() const override { return judge_; }
  Task<std::vector<StripeReport>> StatesOf(std::vector<StripeId> stripes) override;
  Task<Result<StripeName>> NameOf(StripeId stripe) override;
  void Touch(KnownStripe& stripe) override;
  void NoteLacking(StripeId stripe) override { lacking_.Note(stripe); }
  Task<Status> Keep(KnownStripePtr stripe, uint32_t keep_until, KeepLimits limits) override;
  SessionId OpenSession() override { return leases_.OpenSession(); }
  void EndSession(SessionId session) override { leases_.EndSession(session, clock_.Now()); }
  Task<LeaseGrant> Grant(std::vector<LeaseTable::Stripe> stripes, LeaseOrder order) override;
  Task<std::vector<Status>> Renew(std::vector<LeaseId> leases, LeaseOrder order) override;
  Task<Status> Release(std::vector<LeaseId> leases, SessionId session) override;

  // --- For other nodes ---
  // Publishes, unless all blocks of the stripe are there already, whole: kConflict. Of several
  // writers of the same blocks the first wins.
  Task<Status> PublishFirst(IndexedStripe stripe, Durability durability);
  // What another replica has filed, and the one here lacks, is filed and counted here, and that is
  // added to `adopted`; unless it is on its way in or out just now. What cannot be restored was
  // removed while that replica was away: it is withdrawn there.
  Task<Status> Adopt(TargetPort& from, StripeId stripe, uint64_t& adopted);
  // What is filed on a replica whose word does not count (Placement::Sources), and not here, is
  // withdrawn there.
  Task<Status> Disown(TargetPort& from, StripeId stripe);
  // Hits that another node saw.
  void NoteUse(const StripeName& name, const StripeUse& use);

  // The newest manifest of the stripe that any replica has, and the latest of what they say of it.
  // kNotFound when none has it.
  Task<Result<FiledStripe>> FindFiled(StripeId stripe);

  // --- For who runs the home. No I/O ---
  bool IsHome(StripeId stripe) const { return TenureOf(stripe).here; }
  // What any replica knows of it, taken together; nothing when none has filed it.
  std::optional<StripeState> StateOf(StripeId stripe) const;
  StripeReport ReportOn(StripeId stripe) const;
  // True while the stripe must not be evicted: it is leased, or under a keep_until. Expiry and
  // deletion go ahead all the same.
  bool IsHeld(StripeId stripe) const;
  // Counts a filed stripe as stored: when the store opens, or becomes its home, what it finds.
  void CountIn(StripeId stripe);

  // Called in each Remove, once no lookup shows the stripe any more.
  void set_on_removed(std::function<void(StripeId)> on_removed) {
    on_removed_ = std::move(on_removed);
  }

  // False while replicas may miss manifests that they should have (a target was replaced, or a
  // publication had to go elsewhere): then a miss is believed only after asking every target.
  bool settled() const { return settled_; }
  void Unsettle() {
    settled_ = false;
    ++unsettlings_;
  }
  uint64_t unsettlings() const { return unsettlings_; }
  // All replicas were compared. Without effect when something has been unsettled meanwhile:
  // `unsettlings` is what that was before. Until then no miss is believed, however long it takes.
  void Settle(uint64_t unsettlings);
  // Filed with too few replicas, now or for good: no lookup shows them, and no put trusts them,
  // until Show says that all replicas have what any of them had.
  std::vector<StripeId> Hidden() const;
  void Show(const std::vector<StripeId>& stripes);

  LackingStripes& lacking() { return lacking_; }
  const LackingStripes& lacking() const { return lacking_; }

  GoneBlocks& gone() { return gone_; }
  uint64_t memory_bytes() const { return cache_.memory_bytes() + gone_.memory_bytes(); }

 private:
  struct Loading {
    uint32_t readers = 0;
    uint64_t changes = 0;  // Publications and removals since the first of these readers began.
  };

  uint32_t NowSeconds() const { return static_cast<uint32_t>(clock_.UnixNow().value / 1000); }
  Tenure TenureOf(StripeId stripe) const { return tenure_.Of(GroupHashOf(stripe)); }
  Tenure TenureOf(const RunKey& key) const { return tenure_.Of(GroupHashOf(key.space, key.run)); }
  // The run in the cache, if it was read since this process became its home.
  KnownRunPtr KnownHere(const RunKey& key);
  bool AllAreSources(const RunKey& key) const;
  bool IsHomeOfAll(std::span<const StripeId> stripes) const;
  // The outcome of what began in an earlier tenure: another home may have undone it, or not seen
  // it.
  static Status HasMoved() {
    return Status(Code::kUnavailable, "the run got another home meanwhile");
  }
  // Whether what the replicas here do not show is nowhere.
  bool IsSure(StripeId stripe) const;
  Task<Status> AdoptRead(IndexedStripe stripe);
  // Out of every replica that has it.
  Task<Status> WithdrawAll(StripeName name);
  // Whether its blocks are all in other stripes that have lost no shard. All passed in must live
  // until the task is done.
  Task<bool> IsStored(KnownRunPtr run, const Manifest& manifest,
                      std::span<const BlockId> blocks) const;
  Task<Status> FileWithReplicas(const IndexedStripe& stripe, Durability durability);
  Task<Result<KnownRunPtr>> LoadAnew(RunKey key, std::span<const BlockId> wanted,
                                     RunReader::Ask ask);
  // Those that have filed the stripe, and those that should.
  std::vector<TargetPort*> RefilersOf(const StripeName& name) const;
  // Out of every replica, then off every target.
  Task<Status> TakeOut(StripeName name, KnownStripePtr known);
  void NoteChange(const RunKey& key);

  Loop& loop_;
  Clock& clock_;
  TargetSet& targets_;
  const Placement& placement_;
  const HomeTenure& tenure_;
  StoreStats& stats_;
  LeaseTable& leases_;
  const SpaceRegistry& spaces_;
  SpaceLedger& ledger_;
  LackingStripes lacking_;
  GoneBlocks gone_;
  const RunJudge judge_;
  RunReader reader_;
  RunCache cache_;
  std::map<RunKey, Loading> loading_;
  std::map<StripeId, bool> republishing_;  // Whether it was removed meanwhile.
  std::map<StripeId, bool> adopting_;      // The same.
  std::set<StripeId> publishing_;  // Not counted yet.
  struct HiddenIn {
    RunKey run;
    uint64_t tenure = 0;  // A home that came in between has shown it, or taken it back.
  };
  std::map<StripeId, HiddenIn> hidden_;
  std::map<RunKey, std::shared_ptr<Event>> first_;  // Runs in which a PublishFirst is under way.
  bool settled_ = true;
  uint64_t unsettlings_ = 0;
  std::function<void(StripeId)> on_removed_;
};

}  // namespace cairn::kv
