// What the index replicas of this node, taken together, know of a stripe.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "kvstore/client/index_client.h"
#include "kvstore/index/index_replica.h"
#include "kvstore/node/local_target.h"

namespace cairn::kv {

using LocalTargets = std::vector<std::unique_ptr<LocalTarget>>;

// The state with the latest access and expiry of any replica; nothing when none has filed it.
std::optional<StripeState> FindState(const LocalTargets& targets, StripeId stripe);

// Under which run the stripe is filed: one read of metadata. kNotFound when no replica has a
// whole record of it; kUnavailable when one that has it could not be read.
Task<Result<StripeName>> FindName(const LocalTargets& targets, StripeId stripe);

// Takes it out of the index and its shards off the targets, also where no index has it. As
// IndexClient::Remove; kUnavailable also when its name could not be read.
Task<Status> RemoveStripe(const LocalTargets& targets, IndexClient& index, StripeId stripe,
                          MissReason reason);

// How many shards the targets have, by their tables.
uint32_t ShardsAtHand(const LocalTargets& targets, const Manifest& manifest);

// Puts a manifest where it is missing: every stripe filed on some replica, and restorable, is filed
// with the first kIndexReplicas of its run's order. `filed` counts new records. Fails when some
// replica could not be read or written: then try again later.
Task<Status> RepairIndex(const LocalTargets& targets, uint64_t& filed);

}  // namespace cairn::kv
