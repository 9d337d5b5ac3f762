// The clients of the store simulation: sessions that look up, read, put and delete, and judge every
// answer; and audits, which check all that is owed while nobody else works.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/sim/history_log.h"
#include "tests/sim/store_checker.h"
#include "tests/sim/store_scenario.h"
#include "tests/sim/store_world.h"

namespace cairn::sim {

struct WorkloadStats {
  uint64_t puts = 0;
  uint64_t bytes_put = 0;
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t deletes = 0;
  uint64_t keeps = 0;
  uint64_t declined = 0;
};

// All arguments must outlive it. One epoch after the other: Begin, sessions, End.
class StoreWorkload {
 public:
  StoreWorkload(const Scenario& scenario, StoreWorld& world, StoreChecker& checker);

  // Writes all that is done and got to `history`, which must outlive it.
  void Record(HistoryLog& history) { history_ = &history; }

  // Sessions go on until told to end, or something is wrong.
  void Begin() { ending_ = false; }
  void End() { ending_ = true; }
  kv::Task<void> Session(uint64_t seed, kv::Instant until);

  // What of the owed blocks must be read without a degraded read.
  enum class Wholeness {
    kAny,        // Nothing.
    kUntainted,  // What has all its shards: nothing is broken.
    kAll,        // All: a scrub is over.
  };
  // Everything owed is there, and exact. Nothing else may run meanwhile.
  kv::Task<void> Audit(Wholeness wanted);
  // Everything can be put that is not there, and be read then.
  kv::Task<void> PutAll();
  kv::Task<void> DeleteAll();

  // A deletion of the namespace begins, or ends: its id may be of another generation from now on.
  void NoteDrop(uint32_t space) { ++drops_[space]; }
  bool Over() const { return ending_ || world_.crashed() || !problem_.empty(); }
  StoreChecker::Moment Now() { return checker_.Now(UnixNow()); }

  // Nothing has to be there (beyond the fault budget), or not all of it (a full store).
  void AllowMisses() { misses_allowed_ = true; }
  // A put may fail: the budget is exceeded, or the store is full.
  void AllowFailedPuts() { failed_puts_allowed_ = true; }

  // Empty, or the first thing that went wrong.
  const std::string& problem() const { return problem_; }
  void Fail(const std::string& what);
  const WorkloadStats& stats() const { return stats_; }

 private:
  struct Spaces {
    bool ok = false;
    std::vector<kv::NamespaceId> ids;
    std::vector<uint64_t> drops;  // Before they were attached to.
  };

  enum class Patience { kFull, kDrawn };  // Whether a read may have a deadline.

  kv::Task<Spaces> Attach();
  // How many blocks of the chain are there.
  kv::Task<uint32_t> LookUp(const Spaces& spaces, const SimChain& chain);
  // Reads blocks of the chain that are chosen by `wanted`.
  kv::Task<void> Read(const Spaces& spaces, const SimChain& chain, std::vector<uint32_t> wanted,
                      uint64_t seed, Patience patience);
  kv::Task<void> Put(const Spaces& spaces, const SimChain& chain, uint32_t first, uint32_t count,
                     uint64_t seed);
  kv::Task<void> Delete(const Spaces& spaces, const SimChain& chain, uint32_t first);
  // Asks to keep the first blocks of the chain for a while.
  kv::Task<void> Keep(const Spaces& spaces, const SimChain& chain, uint32_t count, uint64_t seed);
  kv::UnixMillis DrawKeep(uint64_t seed) const;
  // Whether a put, which asks to `keep` or not, may fail so although nothing is wrong.
  bool MayRefuse(const Spaces& spaces, const SimChain& chain, bool keep, kv::Code code) const;
  // Its namespace was deleted since it was attached to.
  bool WasDropped(const Spaces& spaces, const SimChain& chain) const {
    return drops_[chain.space] != spaces.drops[chain.space];
  }
  // Into the history, if there is one: operations on these blocks begin. Returns their numbers.
  std::vector<uint64_t> BeginRecord(const HistoryLog::Call& call, const std::vector<BlockKey>& keys,
                                    std::optional<HistoryLog::PutTerms> terms = {});
  void EndRecord(const std::vector<uint64_t>& operations, size_t i, std::string_view result,
                 kv::ByteSpan bytes = {});
  void RecordRead(const std::vector<uint64_t>& operations, size_t i,
                  const kv::BlockReadResult& result, kv::ByteSpan bytes);
  // Into the log: which stripes have the blocks of this run, and where their shards are.
  kv::Task<void> DescribeRun(const Spaces& spaces, const SimChain& chain, size_t at);
  void JudgeRead(const StoreChecker::Access& access, size_t i, const kv::BlockReadResult& result,
                 kv::ByteSpan bytes, bool may_be_late, bool dropped);
  std::vector<uint32_t> DrawWanted(const SimChain& chain, uint32_t found, uint64_t seed) const;

  // Into the log, for a replay: what was done to blocks [first, end) of the chain.
  void Tell(const char* what, const SimChain& chain, size_t first, size_t end,
            const std::string& outcome);
  bool beyond() const { return scenario_.mode == StoreMode::kBeyond; }
  int64_t UnixNow() const { return world_.clock().UnixNow().value; }

  const Scenario& scenario_;
  StoreWorld& world_;
  StoreChecker& checker_;
  HistoryLog* history_ = nullptr;
  kv::Random lease_draws_;
  std::vector<uint64_t> drops_;  // Deletions of each namespace, begun and ended.
  bool ending_ = false;
  bool misses_allowed_ = false;
  bool failed_puts_allowed_ = false;
  std::string problem_;
  WorkloadStats stats_;
};

}  // namespace cairn::sim
