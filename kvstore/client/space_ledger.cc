// Sums by namespace; kept bytes by the second in which their promise ends.
#include "kvstore/client/space_ledger.h"

#include <algorithm>
#include <string>

#include "kvstore/client/stripe_plan.h"

namespace cairn::kv {
namespace {

void TakeFrom(uint64_t& sum, uint64_t part) { sum -= std::min(sum, part); }

std::string InMib(uint64_t bytes) {
  return std::to_string((bytes + kMiB - 1) / kMiB).append(" MiB");
}

}  // namespace

KeepLimits LimitsOf(const SpaceRecord& space) {
  return {.quota_bytes = space.quota_bytes,
          .data_shards = space.data_shards,
          .parity_shards = space.parity_shards};
}

SpaceLedger::Kept SpaceLedger::KeptOf(uint64_t payload, const KeepLimits& limits) {
  const uint64_t width = std::max<uint8_t>(1, WidthOf(payload, limits.data_shards, UINT32_MAX));
  return {payload, payload * (width + limits.parity_shards) / width};
}

void SpaceLedger::Expire(Space& space, uint32_t now) {
  while (!space.until.empty() && space.until.begin()->first <= now) {
    const Kept over = space.until.begin()->second;
    TakeFrom(space.kept.payload, over.payload);
    TakeFrom(space.kept.occupied, over.occupied);
    space.until.erase(space.until.begin());
  }
}

void SpaceLedger::AddKept(Space& space, uint32_t until, const Kept& kept) {
  for (Kept* sum : {&space.until[until], &space.kept}) {
    sum->payload += kept.payload;
    sum->occupied += kept.occupied;
  }
}

// What it occupies is taken in proportion: all stripes of a bucket together take all of it.
void SpaceLedger::TakeKept(Space& space, uint32_t until, uint64_t payload) {
  const auto found = space.until.find(until);
  if (found == space.until.end()) return;  // Over, or the clock was set back since.
  Kept& bucket = found->second;
  const uint64_t taken = std::min(payload, bucket.payload);
  const uint64_t occupied =
      taken == bucket.payload
          ? bucket.occupied
          : static_cast<uint64_t>(static_cast<double>(bucket.occupied) *
                                  static_cast<double>(taken) / static_cast<double>(bucket.payload));
  for (Kept* sum : {&bucket, &space.kept}) {
    TakeFrom(sum->payload, taken);
    TakeFrom(sum->occupied, occupied);
  }
  if (bucket.payload == 0) space.until.erase(found);
}

void SpaceLedger::Add(NamespaceId id, const Stripe& stripe, const KeepLimits& limits,
                      uint32_t now) {
  Space& space = spaces_[id];
  space.stored += stripe.payload;
  ++space.stripes;
  if (stripe.keep_until > now) AddKept(space, stripe.keep_until, KeptOf(stripe.payload, limits));
}

void SpaceLedger::Remove(NamespaceId id, const Stripe& stripe, uint32_t now) {
  const auto found = spaces_.find(id);
  if (found == spaces_.end()) return;
  Space& space = found->second;
  Expire(space, now);
  TakeFrom(space.stored, stripe.payload);
  TakeFrom(space.stripes, 1);
  TakeKept(space, stripe.keep_until, stripe.payload);
  if (space.stripes == 0 && space.reserved == 0 && space.keeping.payload == 0) spaces_.erase(found);
}

SpaceUsage SpaceLedger::UsageOf(NamespaceId id, uint32_t now) {
  const auto found = spaces_.find(id);
  if (found == spaces_.end()) return {};
  Space& space = found->second;
  Expire(space, now);
  return {.stored_bytes = space.stored,
          .stripes = space.stripes,
          .kept_bytes = std::min(space.kept.payload, space.stored)};
}

uint64_t SpaceLedger::KeptBytes(uint32_t now) {
  uint64_t bytes = 0;
  for (auto& [id, space] : spaces_) {
    Expire(space, now);
    bytes += space.kept.payload;
  }
  return bytes;
}

std::map<NamespaceId, uint64_t> SpaceLedger::Stored() const {
  std::map<NamespaceId, uint64_t> stored;
  for (const auto& [id, space] : spaces_) stored.emplace(id, space.stored);
  return stored;
}

void SpaceLedger::Unreserve(NamespaceId space, uint64_t payload) {
  const auto found = spaces_.find(space);
  if (found != spaces_.end()) TakeFrom(found->second.reserved, payload);
}

uint64_t SpaceLedger::Reserved(NamespaceId space) const {
  const auto found = spaces_.find(space);
  return found == spaces_.end() ? 0 : found->second.reserved;
}

Status SpaceLedger::Keep(NamespaceId id, uint64_t payload, const KeepLimits& limits,
                         uint32_t now) {
  if (limits.quota_bytes == 0) {
    return Status(Code::kOverloaded,
                  "keep_until needs a namespace with a quota, and this one has none");
  }
  Space& space = spaces_[id];
  Expire(space, now);
  const uint64_t promised = space.kept.payload + space.keeping.payload;
  if (promised + payload > limits.quota_bytes) {
    return Status(Code::kOverloaded, InMib(payload) + " cannot be kept: " + InMib(promised) +
                                         " of the quota of " + InMib(limits.quota_bytes) +
                                         " are kept already");
  }
  const Kept kept = KeptOf(payload, limits);
  uint64_t occupied = 0;
  for (auto& [other_id, other] : spaces_) {
    Expire(other, now);
    occupied += other.kept.occupied + other.keeping.occupied;
  }
  if (occupied + kept.occupied > kept_occupied_max_) {
    return Status(Code::kOverloaded, InMib(payload) + " cannot be kept: the promises of all " +
                                         "namespaces occupy " + InMib(occupied) + " of at most " +
                                         InMib(kept_occupied_max_));
  }
  space.keeping.payload += kept.payload;
  space.keeping.occupied += kept.occupied;
  return Status();
}

void SpaceLedger::Unkeep(NamespaceId id, uint64_t payload, const KeepLimits& limits) {
  const auto found = spaces_.find(id);
  if (found == spaces_.end()) return;
  const Kept kept = KeptOf(payload, limits);
  TakeFrom(found->second.keeping.payload, kept.payload);
  TakeFrom(found->second.keeping.occupied, kept.occupied);
}

Status SpaceLedger::Raise(NamespaceId id, const Stripe& stripe, uint32_t until,
                          const KeepLimits& limits, uint32_t now) {
  if (until <= now || until <= stripe.keep_until) return Status();
  if (stripe.keep_until <= now) {
    KV_RETURN_IF_ERROR(Keep(id, stripe.payload, limits, now));
    Unkeep(id, stripe.payload, limits);
  }
  Space& space = spaces_[id];
  TakeKept(space, stripe.keep_until, stripe.payload);
  AddKept(space, until, KeptOf(stripe.payload, limits));
  return Status();
}

}  // namespace cairn::kv
