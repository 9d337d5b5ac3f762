// Admission: finds room for a sequence, and loads the part of its prompt that the store has.
#include "engine/serve/engine_core.h"

#include <algorithm>
#include <utility>

#include "kvstore/base/units.h"

namespace cairn::engine {

EngineCore::EngineCore(Parts parts, EngineCoreOptions options)
    : backend_(parts.backend),
      pool_(parts.backend.pool()),
      codec_(parts.codec),
      store_(parts.store),
      clock_(parts.clock),
      options_(std::move(options)),
      block_tokens_(pool_.layout().block_tokens),
      seeds_(options_.seed) {
  KV_CHECK(options_.context_tokens_max > 1);
  KV_CHECK(kv::DivCeil(options_.context_tokens_max, block_tokens_) <= pool_.block_count());
  KV_CHECK(options_.post != nullptr);
}

EngineCore::~EngineCore() { KV_CHECK(idle()); }

void EngineCore::Add(Job job) {
  KV_CHECK(!job.prompt.empty());
  KV_CHECK(job.prompt.size() < options_.context_tokens_max);
  ++stats_.requests_started;
  stats_.prompt_tokens += job.prompt.size();
  sequences_.push_back(std::make_unique<Sequence>(std::move(job), block_tokens_, seeds_.Next(),
                                                  codec_.NewStream()));
  sequences_.back()->chain.Extend(sequences_.back()->tokens);
}

void EngineCore::Cancel(RequestId id) {
  Sequence* sequence = Find(id);
  if (sequence == nullptr) return;
  sequence->cancelled = true;
  // While the store may be writing into its blocks, OnLookup or OnLoaded ends it.
  if (sequence->state != Sequence::State::kLoading) {
    End(*sequence, FinishReason::kCancelled, kv::Status());
  }
}

void EngineCore::CancelAll() {
  std::vector<RequestId> ids;
  for (const auto& sequence : sequences_) ids.push_back(sequence->job.id);
  for (const RequestId id : ids) Cancel(id);
}

void EngineCore::Admit() {
  size_t admitted = 0;
  for (size_t i = 0; i < sequences_.size(); ++i) {
    Sequence& sequence = *sequences_[i];
    if (sequence.state != Sequence::State::kWaiting) {
      ++admitted;
      continue;
    }
    if (admitted >= options_.sequences_max) return;
    const uint64_t known = sequence.tokens.size();
    const uint64_t room = std::min<uint64_t>(known + options_.grow_tokens,
                                             options_.context_tokens_max);
    // In order of arrival: a small request does not overtake a large one for ever.
    if (!Reserve(sequence, static_cast<uint32_t>(room))) return;
    ++admitted;
    BeginLookup(sequence);
  }
}

bool EngineCore::Reserve(Sequence& sequence, uint32_t tokens) {
  const size_t wanted = kv::DivCeil(tokens, block_tokens_);
  if (wanted > sequence.blocks.size() + pool_.free_count()) return false;
  while (sequence.blocks.size() < wanted) sequence.blocks.push_back(*pool_.Allocate());
  return true;
}

void EngineCore::BeginLookup(Sequence& sequence) {
  // The last token is always computed: its logits are what the answer starts from.
  const size_t loadable = (sequence.tokens.size() - 1) / block_tokens_;
  if (loadable == 0) {
    sequence.state = Sequence::State::kRunning;
    return;
  }
  sequence.state = Sequence::State::kLoading;
  std::vector<kv::BlockId> chain = sequence.chain.ids();
  chain.resize(std::min(chain.size(), loadable));
  Borrow(sequence, chain);
  store_.Lookup(std::move(chain), [this, id = sequence.job.id](PrefixHit hit) {
    options_.post([this, id, hit] { OnLookup(id, hit); });
  });
}

void EngineCore::OnLookup(RequestId id, PrefixHit hit) {
  Sequence& sequence = *Find(id);
  if (sequence.cancelled) return End(sequence, FinishReason::kCancelled, kv::Status());
  const size_t loadable = (sequence.tokens.size() - 1) / block_tokens_;
  const uint32_t blocks = std::min(hit.blocks, static_cast<uint32_t>(loadable));
  sequence.saved_blocks = blocks;
  if (blocks == 0 || !WorthLoading(blocks * block_tokens_, hit.load_estimate)) {
    return Run(sequence, 0);
  }
  std::vector<kv::BlockId> chain = sequence.chain.ids();
  chain.resize(blocks);
  const std::vector<BlockIndex> into(sequence.blocks.begin(), sequence.blocks.begin() + blocks);
  store_.Load(std::move(chain), into, clock_.Now() + options_.load_deadline,
              [this, id, blocks](uint32_t loaded) {
                options_.post([this, id, blocks, loaded] { OnLoaded(id, blocks, loaded); });
              });
}

void EngineCore::OnLoaded(RequestId id, uint32_t wanted, uint32_t loaded) {
  Sequence& sequence = *Find(id);
  stats_.blocks_loaded += loaded;
  stats_.block_loads_failed += wanted - loaded;
  if (sequence.cancelled) return End(sequence, FinishReason::kCancelled, kv::Status());
  // What could not be read is computed, and offered to the store again.
  sequence.saved_blocks = loaded;
  Run(sequence, loaded);
}

// An answer is often followed by the next question before its last blocks are stored.
void EngineCore::Borrow(Sequence& sequence, std::span<const kv::BlockId> chain) {
  sequence.borrowed.resize(chain.size());
  for (size_t i = 0; i < chain.size(); ++i) {
    const auto found = being_saved_.find(chain[i]);
    if (found == being_saved_.end()) continue;
    pool_.AddReference(found->second);
    sequence.borrowed[i] = found->second;
  }
}

// Puts borrowed blocks into the place of its own, from `first` to the first that was not borrowed,
// and gives back the others. Returns how many of the first blocks now hold their KV.
uint32_t EngineCore::TakeBorrowed(Sequence& sequence, uint32_t first) {
  uint32_t known = first;
  for (; known < sequence.borrowed.size() && sequence.borrowed[known]; ++known) {
    std::swap(sequence.blocks[known], *sequence.borrowed[known]);
  }
  for (const std::optional<BlockIndex>& block : sequence.borrowed) {
    if (block) pool_.Release(*block);
  }
  sequence.borrowed.clear();
  return known;
}

void EngineCore::Run(Sequence& sequence, uint32_t loaded) {
  const uint32_t known = TakeBorrowed(sequence, loaded);
  sequence.saved_blocks = std::max(sequence.saved_blocks, known);
  sequence.computed = known * block_tokens_;
  if (!sequence.preempted) {
    sequence.cached_tokens = sequence.computed;
    stats_.cached_tokens += sequence.computed;
  }
  sequence.state = Sequence::State::kRunning;
}

bool EngineCore::WorthLoading(uint32_t tokens, kv::Nanos load_estimate) const {
  if (!options_.load_only_if_faster || seconds_per_token_ == 0) return true;
  return static_cast<double>(load_estimate.value) * 1e-9 < tokens * seconds_per_token_;
}

Sequence* EngineCore::Find(RequestId id) {
  const auto found = std::find_if(sequences_.begin(), sequences_.end(),
                                  [&](const auto& sequence) { return sequence->job.id == id; });
  return found == sequences_.end() ? nullptr : found->get();
}

EngineStats EngineCore::stats() const {
  EngineStats stats = stats_;
  for (const auto& sequence : sequences_) {
    const bool waiting = sequence->state == Sequence::State::kWaiting;
    ++(waiting ? stats.requests_waiting : stats.requests_running);
  }
  return stats;
}

}  // namespace cairn::engine
