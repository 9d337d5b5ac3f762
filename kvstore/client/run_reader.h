// Reads a run from its index replicas, and takes together what they know of it.
#pragma once

#include <span>

#include "kvstore/client/placement.h"
#include "kvstore/client/run_judge.h"
#include "kvstore/client/target_set.h"

namespace cairn::kv {

// Loop thread only. All must outlive it.
class RunReader {
 public:
  RunReader(TargetSet& targets, const Placement& placement, const RunJudge& judge)
      : targets_(targets), placement_(placement), judge_(judge) {}

  enum class Ask {
    kReplicas,    // One, and when it does not show every wanted block the others that should.
    kUntilFound,  // One, and when it does not show every wanted block all others.
    kAll,         // All at once, in any case.
    kPlaces,      // Also those that are away: without their answer it is not known what is filed.
    kOthers,      // All but the first at once: that one was asked otherwise.
  };
  // `wanted` must live until the task is done. kUnavailable when nobody answers.
  Task<Result<KnownRun>> Read(RunKey key, std::span<const BlockId> wanted, Ask ask);

 private:
  TargetSet& targets_;
  const Placement& placement_;
  const RunJudge& judge_;
};

}  // namespace cairn::kv
