// The engine without threads: admits sequences, loads and saves their KV, computes steps.
//
// A state machine on one thread. Completions of the store come through Options::post, which runs
// the given call on the engine's thread, later. The owner calls Step() while it returns true, and
// after that waits for the next job, cancellation or posted call.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "engine/compute/backend.h"
#include "engine/schedule/batcher.h"
#include "engine/serve/sequence.h"
#include "engine/transfer/prefix_store.h"
#include "kvstore/io/clock.h"

namespace cairn::engine {

struct EngineCoreOptions {
  uint32_t context_tokens_max = 0;   // Of one sequence; its blocks fit into the pool.
  uint32_t sequences_max = 16;       // Admitted at the same time.
  uint32_t save_blocks_max = 64;     // In flight to the store; more wait, holding their blocks.
  uint32_t grow_tokens = 256;        // Room for answer tokens that a sequence is admitted with.
  kv::Nanos load_deadline = kv::Seconds(10);
  // Load a hit only when the store's estimate beats computing it. Off: always load.
  bool load_only_if_faster = true;
  uint64_t seed = 0;  // For requests that bring none; each gets its own generator.
  std::function<void(std::function<void()>)> post;
};

class EngineCore {
 public:
  // All must outlive the core.
  struct Parts {
    Backend& backend;
    const TextCodec& codec;
    PrefixStore& store;
    const kv::Clock& clock;
  };
  EngineCore(Parts parts, EngineCoreOptions options);
  ~EngineCore();

  void Add(Job job);
  // Ends it with kCancelled: at once, or when the store has let go of its blocks.
  void Cancel(RequestId id);
  void CancelAll();

  // Admits what can be admitted and computes one step. False when there was nothing to compute.
  bool Step();

  // True when nothing is running, waiting, loading or being saved.
  bool idle() const { return sequences_.empty() && saves_in_flight_ == 0 && saves_.empty(); }

  // Counters since start; requests_waiting and requests_running as of now.
  EngineStats stats() const;

 private:
  struct SaveJob {
    std::vector<kv::BlockId> chain;
    uint32_t first = 0;
    std::vector<BlockIndex> blocks;  // One reference each is held here.
  };

  // Admission (engine_core.cc).
  void Admit();
  bool Reserve(Sequence& sequence, uint32_t tokens);
  void BeginLookup(Sequence& sequence);
  void OnLookup(RequestId id, PrefixHit hit);
  void OnLoaded(RequestId id, uint32_t wanted, uint32_t loaded);
  void Borrow(Sequence& sequence, std::span<const kv::BlockId> chain);
  uint32_t TakeBorrowed(Sequence& sequence, uint32_t first);
  void Run(Sequence& sequence, uint32_t loaded);
  bool WorthLoading(uint32_t tokens, kv::Nanos load_estimate) const;

  // Steps (engine_step.cc).
  std::vector<Sequence*> Running();
  bool MakeRoom(Sequence& sequence, uint32_t tokens);
  Sequence* Youngest(const Sequence& except);
  void Preempt(Sequence& sequence);
  std::vector<BatchShare> PlanShares(const std::vector<Sequence*>& running);
  void Compute(const std::vector<Sequence*>& running, const std::vector<BatchShare>& shares);
  void Advance(Sequence& sequence, std::span<const float> logits);
  void Emit(Sequence& sequence, const std::string& text);

  // Saves and endings (engine_step.cc).
  void QueueSave(Sequence& sequence);
  void PumpSaves();
  void OnSaved(const SaveJob& job, uint32_t saved);
  void End(Sequence& sequence, FinishReason reason, const kv::Status& status);
  void ReleaseBlocks(Sequence& sequence);
  Sequence* Find(RequestId id);

  // Constant.
  Backend& backend_;
  KvPool& pool_;
  const TextCodec& codec_;
  PrefixStore& store_;
  const kv::Clock& clock_;
  const EngineCoreOptions options_;
  const uint32_t block_tokens_;

  std::vector<std::unique_ptr<Sequence>> sequences_;  // Oldest first.
  std::deque<SaveJob> saves_;
  // Blocks of saves that wait or are in flight: what the next request shares until it can load.
  std::map<kv::BlockId, BlockIndex> being_saved_;
  uint32_t saves_in_flight_ = 0;  // Blocks.
  size_t turn_ = 0;               // Rotates who comes first among those that decode.
  double seconds_per_token_ = 0;  // Of prefill, smoothed; 0 until measured.
  kv::Random seeds_;
  std::vector<float> logits_;
  EngineStats stats_;
};

}  // namespace cairn::engine
