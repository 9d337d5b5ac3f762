// A pass over the stripes of a node in the background, at a set rate, that can be stopped.
#pragma once

#include <memory>
#include <vector>

#include "kvstore/async/gate.h"
#include "kvstore/base/log.h"
#include "kvstore/client/home_index.h"
#include "kvstore/client/store_admin.h"
#include "kvstore/client/stripe_restorer.h"
#include "kvstore/io/clock.h"
#include "kvstore/node/index_view.h"

namespace cairn::kv {

// Loop thread only. Everything in `parts` must outlive it.
class MaintenancePass {
 public:
  struct Parts {
    Loop& loop;
    Clock& clock;
    Log& log;
    const LocalTargets& targets;
    HomeIndex& index;
    StripeRestorer& restorer;
  };
  MaintenancePass(Parts parts, const char* name);
  virtual ~MaintenancePass() = default;

  // Begins a pass; 0 bytes per second: no limit. kConflict when one is running, kUnavailable after
  // Close.
  Status Start(uint64_t bytes_per_second);
  // Ends the pass, if one is running, after the stripe that it is at.
  Task<void> Stop();
  // As Stop, and none can begin any more. Call it once.
  Task<void> Close();

  // bytes_left is an estimate, from the stripes that are left.
  MaintenanceStatus status() const { return status_; }
  // Of status().shards_failed: so many are lost for good, and another pass would not help.
  uint64_t shards_lost() const { return shards_lost_; }

 protected:
  // Which stripes to visit, and in which order. What comes later is not in this pass.
  virtual Task<std::vector<StripeId>> Plan() = 0;
  // False: not worth a visit, or gone.
  virtual bool Wants(const StripeState& state) const = 0;
  virtual Task<RestoreReport> Visit(FiledStripe stripe) = 0;

  // Every stripe that some replica here has filed, and that this node is the home of, once each.
  std::vector<std::pair<StripeId, StripeState>> AllStripes() const;

  Parts parts_;

 private:
  Task<void> Run(std::shared_ptr<Event> stopping);
  Task<void> VisitOne(StripeId stripe);
  // `done` of `all` stripes, at least one, were visited in the time `taken`.
  void NoteProgress(size_t done, size_t all, Nanos taken);

  const char* const name_;
  MaintenanceStatus status_;
  uint64_t shards_lost_ = 0;
  std::shared_ptr<Event> stopping_;  // Of the pass that is running; null when none is.
  std::shared_ptr<Event> ended_;
  Gate gate_;
};

}  // namespace cairn::kv
