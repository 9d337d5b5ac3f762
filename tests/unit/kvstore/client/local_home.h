// What a store in one process stands on: the home of all its runs, for fixtures.
#pragma once

#include "kvstore/client/home.h"
#include "kvstore/client/local_placement.h"
#include "kvstore/client/space_store.h"

namespace cairn::kv {

struct LocalHome {
  struct Parts {
    Loop& loop;
    Clock& clock;
    Random& random;
    Log& log;
    TargetSet& targets;
  };
  explicit LocalHome(Parts parts, HomeOptions options = {})
      : placement(parts.targets),
        space_store(parts.clock, parts.log, parts.targets),
        home({.loop = parts.loop,
              .clock = parts.clock,
              .random = parts.random,
              .log = parts.log,
              .targets = parts.targets,
              .placement = placement,
              .tenure = tenure},
             options) {}

  LocalPlacement placement;
  TargetSpaceStore space_store;
  SoleHome tenure;
  Home home;
};

}  // namespace cairn::kv
