// What a node's store stands on besides its own targets: the targets of others, and who keeps which
// part of the index. Alone, a node is all there is (sole_surroundings.h); in a cluster the map says
// (kvstore/cluster).
#pragma once

#include "kvstore/client/home.h"
#include "kvstore/client/placement.h"
#include "kvstore/client/space_store.h"
#include "kvstore/client/striped_store.h"
#include "kvstore/io/payload_memory.h"
#include "kvstore/node/index_view.h"
#include "kvstore/node/repairer.h"

namespace cairn::kv {

// Loop thread only. Calls come in the order in which they stand here.
class Surroundings {
 public:
  virtual ~Surroundings() = default;

  // The node's own targets are open; they stay where they are until the node is destroyed. On
  // failure everything is over, and nothing else is called.
  virtual Task<Status> Join(const LocalTargets& own) = 0;

  // --- What the store is made of ---
  virtual TargetSet& targets() = 0;
  virtual Placement& placement() = 0;
  virtual const HomeTenure& tenure() = 0;
  virtual SpaceStore& space_store() = 0;
  // Of the network to the other nodes; null when there is none that wants to know.
  virtual PayloadMemory* payload_memory() { return nullptr; }
  // Called once.
  virtual StripeIndex& IndexOver(Home& home) = 0;

  // --- While the store serves ---
  struct Served {
    StripedStore& store;
    Home& home;
    SpaceKeeper& keeper;
    Repairer& repairer;
  };
  // The store stands: others may be served from it.
  virtual void Begin(Served served) = 0;
  // True when no other node has targets: what a crash left is for this one to clear up.
  virtual bool sole() const = 0;
  // Files every stripe that this node is the home of with all replicas that should have it; `filed`
  // counts new records. Fails when some replica could not be read or written: then again later.
  virtual Task<Status> RepairIndex(uint64_t& filed) = 0;
  // Runs no pass and begins nothing new any more: others take over.
  virtual Task<void> Leave() = 0;
  // Nobody calls the store any more, and nobody is served after this.
  virtual Task<void> Close() = 0;
};

}  // namespace cairn::kv
