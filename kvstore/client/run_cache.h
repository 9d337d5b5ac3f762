// A bounded cache of runs, so that a get right after a lookup reads no metadata.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "kvstore/index/index_replica.h"

namespace cairn::kv {

struct RunKey {
  NamespaceId space;
  RunId run;
  auto operator<=>(const RunKey&) const = default;
};

// A stripe as the client knows it. Shared by the cache and by reads in flight: the cache may drop
// it, and eviction may set `gone`, while a read still holds it.
struct KnownStripe {
  Manifest manifest;
  UnixMillis expires_at;
  uint32_t position = 0;
  uint32_t touched_seconds = 0;  // When its replicas were last told of a hit.
  bool gone = false;

  // A hit: moves the expiry, by class, and says what its replicas should be told. Nothing when they
  // were told within this second.
  std::optional<StripeUse> NoteHit(UnixMillis now);
};
using KnownStripePtr = std::shared_ptr<KnownStripe>;

// The stripes of one run, and where in them each block is.
class KnownRun {
 public:
  struct Place {
    BlockId id;
    KnownStripePtr stripe;
    uint32_t block = 0;  // In the manifest.
  };

  // A stripe that is there already is replaced by a manifest of a higher generation, and keeps its
  // own otherwise; its expiry is never lowered.
  void Add(IndexedStripe stripe);
  void Remove(StripeId stripe);
  // Every stripe that has the block: several only after a crash between two puts of it.
  // Holds until the next change of the run.
  std::span<const Place> Find(BlockId id) const;
  const std::vector<KnownStripePtr>& stripes() const { return stripes_; }
  uint64_t memory_bytes() const;

  // Every replica was asked: what is not here is nowhere.
  bool complete = false;
  // And every one that was to be asked has answered (RunReader::Ask).
  bool answered_by_all = false;
  Instant loaded_at = {};  // For who believes it for a while only.
  uint64_t tenure = 0;     // For a home: the Tenure::since under which it was read.

 private:
  std::vector<KnownStripePtr> stripes_;
  std::vector<Place> places_;  // By ascending id.
};

// Shared by the cache and by lookups in flight: the cache may drop it meanwhile.
using KnownRunPtr = std::shared_ptr<KnownRun>;

// Loop thread only.
class RunCache {
 public:
  explicit RunCache(uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // Null when unknown.
  KnownRunPtr Find(const RunKey& key);
  // Keeps the run, dropping those longest unused when the limit is passed.
  KnownRunPtr Insert(const RunKey& key, KnownRun run);
  // Calls for runs that are not here do nothing.
  void Add(const RunKey& key, IndexedStripe stripe);
  void Remove(const RunKey& key, StripeId stripe);
  void Forget(const RunKey& key);

  uint64_t memory_bytes() const { return bytes_; }

 private:
  struct Entry {
    KnownRunPtr run;
    uint64_t bytes = 0;
    std::list<RunKey>::iterator age;
  };
  void Account(Entry& entry);
  void Trim();

  const uint64_t bytes_max_;
  uint64_t bytes_ = 0;
  std::list<RunKey> ages_;  // The front is the latest used.
  std::map<RunKey, Entry> runs_;
};

}  // namespace cairn::kv
