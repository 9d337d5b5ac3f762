// Why blocks are gone: which stripes are being removed, and a bounded memory of those that were.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "kvstore/client/block_store.h"
#include "kvstore/types/manifest.h"

namespace cairn::kv {

// Not thread-safe. The memory is of the last 65,536 blocks, by fingerprint: a wrong reason is
// possible, at about one in 2^48.
class GoneBlocks {
 public:
  GoneBlocks();

  // --- Stripes that are on their way out ---
  // False when it was going already: then the first reason stands.
  bool Begin(StripeId stripe, MissReason reason) { return going_.emplace(stripe, reason).second; }
  void End(StripeId stripe) { going_.erase(stripe); }
  bool IsGoing(StripeId stripe) const { return !going_.empty() && going_.contains(stripe); }

  // --- What was removed ---
  void Remember(const NamespaceId& space, const BlockId& id, MissReason reason);
  void Remember(const Manifest& manifest, MissReason reason);
  // They are there again.
  void Forget(const Manifest& manifest);
  // kNone when nothing is remembered of it.
  MissReason Why(const NamespaceId& space, const BlockId& id) const;

  // Of a stripe that is going, or is known to be gone: kAbsent when nothing else is remembered.
  MissReason WhyGone(const Manifest& manifest) const;

  uint64_t memory_bytes() const { return gone_.size() * sizeof(Gone); }

 private:
  struct Gone {
    uint64_t fingerprint = 0;
    MissReason reason = MissReason::kNone;
  };

  std::map<StripeId, MissReason> going_;
  std::vector<Gone> gone_;
};

}  // namespace cairn::kv
