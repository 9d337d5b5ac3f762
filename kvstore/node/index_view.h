// What the index replicas of this node, taken together, know of a stripe.
#pragma once

#include <memory>
#include <vector>

#include "kvstore/client/stripe_index.h"
#include "kvstore/index/index_replica.h"
#include "kvstore/node/local_target.h"

namespace cairn::kv {

using LocalTargets = std::vector<std::unique_ptr<LocalTarget>>;

// Takes it out of the index and its shards off the targets, also where no index has it. As
// StripeIndex::Remove; kUnavailable also when its name could not be read.
Task<Status> RemoveStripe(StripeIndex& index, StripeId stripe, MissReason reason);

// How many shards the targets have, by their tables.
uint32_t ShardsAtHand(const LocalTargets& targets, const Manifest& manifest);

// Puts a manifest where it is missing: every stripe filed on some replica, and restorable, is filed
// with the first kIndexReplicas of its run's order. `filed` counts new records. Fails when some
// replica could not be read or written: then try again later.
Task<Status> RepairIndex(const LocalTargets& targets, uint64_t& filed);

}  // namespace cairn::kv
