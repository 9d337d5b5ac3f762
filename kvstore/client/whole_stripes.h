// Which of the stripes that have some blocks have lost no shard.
#pragma once

#include <set>
#include <span>

#include "kvstore/client/run_judge.h"
#include "kvstore/client/target_set.h"

namespace cairn::kv {

// Asks the targets of all of them at once (TargetSet::IsWhole). `wanted` and what is referred to
// must live until the task is done. Afterwards a stripe may be gone all the same: judge it again.
Task<std::set<StripeId>> FindWhole(const RunJudge& judge, const TargetSet& targets,
                                   KnownRunPtr run, NamespaceId space,
                                   std::span<const BlockId> wanted);

}  // namespace cairn::kv
