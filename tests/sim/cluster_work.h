// The clients of the cluster simulation: one at each node, which put, look up, get and delete.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/cluster_world.h"
#include "tests/sim/history_log.h"
#include "tests/support/random_chain.h"

namespace cairn::kv {

// Everything that is done is told to the history. All arguments must outlive it.
class ClusterWork {
 public:
  ClusterWork(ClusterWorld& world, sim::HistoryLog& history, uint64_t seed);

  // A client works at node n from now on; until Leave, which waits for its last call. Where none
  // works Leave does nothing.
  void Enter(uint32_t n);
  void Leave(uint32_t n);
  // All of them stop.
  void End();
  // Every block of every chain, through some node that is up.
  void ReadAll();

  void NoteFault(uint32_t n, Instant began, Instant ended) {
    history_.Fault(NameOf(n), began, ended);
  }
  void NoteLost(uint32_t n) { history_.Lost(NameOf(n)); }
  void NoteRepaired() { history_.Repaired(); }
  // Something that harms no shard: for a moment calls may fail.
  void NoteChange() { history_.Fault("", world_.clock().Now(), world_.clock().Now()); }
  uint64_t operations() const { return operations_; }

 private:
  struct Client {
    bool leaving = false;
    Task<void> working;
  };

  static std::string NameOf(uint32_t n) { return std::to_string(n); }
  Task<void> Work(uint32_t n, std::shared_ptr<Client> client);
  Task<void> PutSome(uint32_t n, NamespaceId space, uint64_t seed);
  Task<void> Get(uint32_t n, NamespaceId space, std::shared_ptr<const Chain> chain);
  Task<void> Delete(uint32_t n, NamespaceId space, std::shared_ptr<const Chain> chain);
  // Numbers of operations that begin, one for each block.
  std::vector<uint64_t> Begin(const sim::HistoryLog::Call& call, const Chain& chain,
                              std::optional<sim::HistoryLog::PutTerms> terms = {});
  std::shared_ptr<const Chain> AnyChain(Random& random) const;

  ClusterWorld& world_;
  sim::HistoryLog& history_;
  Random random_;
  std::map<uint32_t, std::shared_ptr<Client>> clients_;
  std::vector<std::shared_ptr<const Chain>> chains_;
  uint64_t operations_ = 0;
};

}  // namespace cairn::kv
