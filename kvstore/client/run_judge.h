// Judges the stripes of a run: which may be served now, and if none, why not.
#pragma once

#include <span>
#include <vector>

#include "kvstore/client/gone_blocks.h"
#include "kvstore/client/run_cache.h"
#include "kvstore/client/target_set.h"

namespace cairn::kv {

// Pure over the run, the clock, what is gone, and which targets are at hand: all must outlive it.
class RunJudge {
 public:
  RunJudge(const Clock& clock, const TargetSet& targets, const GoneBlocks& gone)
      : clock_(clock), targets_(targets), gone_(gone) {}

  // Whether a block of this stripe may be served: not gone, not expired, enough shards at hand.
  MissReason WhyNot(const KnownStripe& stripe) const;
  // How many more shards of it may be lost.
  uint32_t Spare(const KnownStripe& stripe) const;

  // The first place of the block that may be served; otherwise null and the reason.
  struct Answer {
    const KnownRun::Place* place = nullptr;
    MissReason reason = MissReason::kAbsent;
  };
  Answer Find(const KnownRun& run, const NamespaceId& space, BlockId id) const;
  // The answers for `wanted`, in order, up to and with the first miss. Each stripe is judged once:
  // cheaper than Find for each. The places hold until the next await.
  std::vector<Answer> FindPrefix(const KnownRun& run, const NamespaceId& space,
                                 std::span<const BlockId> wanted) const;
  bool AllUsable(const KnownRun& run, std::span<const BlockId> wanted) const;

 private:
  class AtOneMoment;

  MissReason WhyNot(const KnownStripe& stripe, UnixMillis now) const;
  MissReason WhyUnknown(const KnownRun& run, const NamespaceId& space, BlockId id) const;

  const Clock& clock_;
  const TargetSet& targets_;
  const GoneBlocks& gone_;
};

}  // namespace cairn::kv
