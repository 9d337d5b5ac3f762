// What one seed of the store simulation consists of: targets, namespaces, chains, and which faults.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "kvstore/client/admission.h"
#include "kvstore/client/block_store.h"
#include "tests/sim/store_checker.h"
#include "tests/sim/store_world.h"

namespace cairn::sim {

enum class StoreMode {
  kWithin,  // Faults that the store must survive without losing anything.
  kBeyond,  // More of them: nothing is owed, but nothing may be wrong or hang.
  kFull,    // A small store in which puts go on by eviction.
  kCrash,   // A short fixed workload, for a crash at each of its writes.
};

enum class FaultStyle {
  kCalm,    // Nothing but crashes and power cuts: then nothing may even look broken.
  kSilent,  // Some targets lie, lose, refuse, stall, die and are replaced.
  kTold,    // Some targets refuse what is asked of them, and say so; then any other one is lost.
};

inline constexpr uint32_t kKeptSpace = 0;  // The namespace with a quota, where blocks may be kept.

struct SimChain {
  uint32_t space = 0;
  std::vector<kv::BlockId> ids;
  std::vector<uint32_t> sizes;

  BlockKey key(size_t i) const { return {space, ids[i]}; }
  // Of blocks [first, end).
  std::vector<BlockKey> keys(size_t first, size_t end) const;
};

struct Scenario {
  uint64_t seed = 1;
  StoreMode mode = StoreMode::kWithin;
  FaultStyle style = FaultStyle::kCalm;
  StoreWorldOptions world;
  std::vector<kv::NamespaceOptions> spaces;
  std::vector<SimChain> chains;
  std::set<uint32_t> faulty;  // The targets that may fail.
  uint64_t cache_bytes = 0;   // Of the DRAM cache; without one each read meets the faults.
  uint64_t epochs = 1;        // From a start of the process to its end.
  uint64_t sessions_max = 1;
  uint64_t pause_millis_max = 2'000;  // Of a session, between two rounds.
  uint64_t epoch_millis_max = 40'000;
  uint64_t put_bytes_max = UINT64_MAX;  // Then an epoch ends.
  bool deletes = false;
  bool leases = false;
  bool own_ttls = false;     // Some puts bring their own.
  bool keeps = false;        // Some blocks are to be kept: their namespace has a quota.
  bool scrubs = false;       // Scrub and repair run now and then.
  bool drops = false;        // Namespaces are deleted, and created again.
  bool clock_steps = false;  // Somebody sets the calendar.
  kv::AdmissionPolicy admission = kv::AdmissionPolicy::kAll;

  // A kind of fault is in this seed, or not (swarm).
  uint32_t fault_mask = 0;
  bool has(uint32_t fault) const { return (fault_mask >> fault & 1) != 0; }
};

// The same seed and mode give the same scenario on every compiler.
Scenario DrawScenario(uint64_t seed, StoreMode mode);

// The class of a namespace says how long a put lasts.
int64_t TtlMillis(const kv::NamespaceOptions& space);

}  // namespace cairn::sim
