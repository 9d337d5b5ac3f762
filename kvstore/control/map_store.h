// The cluster map in the control store: read by fetching what changed, replaced as a whole.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "kvstore/control/control_keys.h"
#include "kvstore/control/control_store.h"
#include "kvstore/control/map_codec.h"

namespace cairn::kv {

// One user at a time. Loop thread only.
class MapStore {
 public:
  // `store` must outlive this.
  MapStore(ControlStore& store, ControlKeys keys) : store_(store), keys_(std::move(keys)) {}

  struct Loaded {
    std::shared_ptr<const ClusterMap> map;  // Null: there is none yet.
    int64_t revision = 0;                   // Of the store: watch the head from the next one on.
  };
  // The map as it is now. Fetches the parts that it has not seen yet.
  Task<Result<Loaded>> Load(Instant deadline);

  // Makes `next` the map, in place of the one that was loaded or published last. `guard` must hold
  // at each write. kConflict when it does not, or when somebody else replaced the map: then Load.
  // After any other failure the map may or may not have been replaced: Load as well.
  Task<Status> Publish(std::shared_ptr<const ClusterMap> next, Compare guard, Instant deadline);

 private:
  Task<Result<bool>> FetchParts(MapHead head, Instant deadline);
  Task<Status> PutParts(EncodedMap encoded, Compare guard, Instant deadline);
  Task<Status> CommitGuarded(Transaction transaction, Instant deadline);
  Task<void> DeleteStale(EncodedMap encoded, Compare guard, Instant deadline);

  ControlStore& store_;
  const ControlKeys keys_;
  int64_t head_revision_ = 0;
  std::map<std::string, std::string> parts_;  // By name: what was fetched or made lately.
  std::set<std::string> present_;             // Named by the last head.
  std::set<std::string> stored_;              // For a publisher: what lies in the store.
};

}  // namespace cairn::kv
