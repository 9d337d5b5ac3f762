// What each namespace has stored, and what it has promised to keep. Pure.
//
// Counted as stripes are published and removed, and once from the index when the store opens.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "kvstore/base/status.h"
#include "kvstore/index/index_codec.h"

namespace cairn::kv {

struct SpaceUsage {
  uint64_t stored_bytes = 0;  // Payload, each block in whole sectors.
  uint64_t stripes = 0;
  uint64_t kept_bytes = 0;  // Of stored_bytes, under a keep_until in the future.
};

// What a promise is measured against.
struct KeepLimits {
  uint64_t quota_bytes = 0;  // Of the namespace. 0: none, and so no promise.
  uint8_t data_shards = 1;   // Of the namespace: how much more than its payload a stripe occupies.
  uint8_t parity_shards = 0;
};

KeepLimits LimitsOf(const SpaceRecord& space);

// Times are seconds since 1970; calls may come with a `now` that steps back.
class SpaceLedger {
 public:
  // `kept_occupied_max`: what kept stripes of all namespaces may occupy on the targets.
  explicit SpaceLedger(uint64_t kept_occupied_max) : kept_occupied_max_(kept_occupied_max) {}

  struct Stripe {
    uint64_t payload = 0;
    uint32_t keep_until = 0;
  };
  void Add(NamespaceId space, const Stripe& stripe, const KeepLimits& limits, uint32_t now);
  void Remove(NamespaceId space, const Stripe& stripe, uint32_t now);
  SpaceUsage UsageOf(NamespaceId space, uint32_t now);
  uint64_t KeptBytes(uint32_t now);  // Payload, of all.
  // What is stored of each namespace, here.
  std::map<NamespaceId, uint64_t> Stored() const;

  // What other homes have stored of a namespace, as they told last; what is here comes on top.
  void SetElsewhere(std::map<NamespaceId, uint64_t> bytes) { elsewhere_ = std::move(bytes); }
  uint64_t Elsewhere(NamespaceId space) const {
    const auto found = elsewhere_.find(space);
    return found == elsewhere_.end() ? 0 : found->second;
  }

  // --- Bytes that are on their way: counted against the quota, not yet stored ---
  void Reserve(NamespaceId space, uint64_t payload) { spaces_[space].reserved += payload; }
  void Unreserve(NamespaceId space, uint64_t payload);
  uint64_t Reserved(NamespaceId space) const;

  // --- Promises ---
  // kOverloaded, with what is in the way, when `payload` more may not be kept. Otherwise they are
  // reserved until Unkeep.
  Status Keep(NamespaceId space, uint64_t payload, const KeepLimits& limits, uint32_t now);
  void Unkeep(NamespaceId space, uint64_t payload, const KeepLimits& limits);
  // A stored stripe is kept until `until` from now on. A longer promise costs nothing more.
  Status Raise(NamespaceId space, const Stripe& stripe, uint32_t until, const KeepLimits& limits,
               uint32_t now);

 private:
  struct Kept {
    uint64_t payload = 0;
    uint64_t occupied = 0;
  };
  struct Space {
    uint64_t stored = 0;
    uint64_t stripes = 0;
    uint64_t reserved = 0;
    Kept keeping;                    // Promised, and not yet stored.
    std::map<uint32_t, Kept> until;  // Kept stripes by the end of the promise.
    Kept kept;                       // The sum of `until`.
  };
  static Kept KeptOf(uint64_t payload, const KeepLimits& limits);
  void Expire(Space& space, uint32_t now);
  void AddKept(Space& space, uint32_t until, const Kept& kept);
  void TakeKept(Space& space, uint32_t until, uint64_t payload);

  const uint64_t kept_occupied_max_;
  std::map<NamespaceId, Space> spaces_;
  std::map<NamespaceId, uint64_t> elsewhere_;
};

}  // namespace cairn::kv
