// Steps: computes what the batcher picked, samples, emits text, and saves blocks that are full.
#include <algorithm>
#include <utility>

#include "engine/serve/engine_core.h"
#include "kvstore/base/units.h"

namespace cairn::engine {
namespace {

// Weight of the newest measurement in the smoothed prefill speed.
constexpr double kSmoothing = 0.3;
// Steps smaller than this say little about prefill speed.
constexpr uint32_t kMeasuredTokensMin = 64;

}  // namespace

bool EngineCore::Step() {
  Admit();
  PumpSaves();
  const std::vector<Sequence*> running = Running();
  const std::vector<BatchShare> shares = PlanShares(running);
  if (shares.empty()) return false;
  Compute(running, shares);
  return true;
}

std::vector<Sequence*> EngineCore::Running() {
  std::vector<Sequence*> running;
  for (const auto& sequence : sequences_) {
    if (sequence->state == Sequence::State::kRunning) running.push_back(sequence.get());
  }
  if (!running.empty()) {
    const auto first = static_cast<std::ptrdiff_t>(turn_++ % running.size());
    std::rotate(running.begin(), running.begin() + first, running.end());
  }
  return running;
}

std::vector<BatchShare> EngineCore::PlanShares(const std::vector<Sequence*>& running) {
  std::vector<uint32_t> pending;
  // Making room may preempt a sequence that comes earlier in the list, so room is made first.
  std::vector<bool> has_room(running.size());
  for (size_t i = 0; i < running.size(); ++i) {
    Sequence& sequence = *running[i];
    has_room[i] = sequence.state == Sequence::State::kRunning &&
                  MakeRoom(sequence, static_cast<uint32_t>(sequence.tokens.size()));
  }
  // One without room sits this step out: blocks come back when saves, loads or others finish.
  for (size_t i = 0; i < running.size(); ++i) {
    const bool takes_part = has_room[i] && running[i]->state == Sequence::State::kRunning;
    pending.push_back(takes_part ? running[i]->pending() : 0);
  }
  const BatchLimits limits{.step_tokens_max = backend_.step_tokens_max(),
                           .sequences_max = options_.sequences_max};
  std::vector<BatchShare> shares = PlanStep(pending, limits);
  std::erase_if(shares, [](const BatchShare& share) { return share.tokens == 0; });
  return shares;
}

bool EngineCore::MakeRoom(Sequence& sequence, uint32_t tokens) {
  while (!Reserve(sequence, tokens)) {
    Sequence* youngest = Youngest(sequence);
    if (youngest == nullptr) return false;
    Preempt(*youngest);
  }
  return true;
}

// The last to arrive among those that run and came after `except`: the oldest is never taken from,
// so it finishes, and then the next.
Sequence* EngineCore::Youngest(const Sequence& except) {
  for (size_t i = sequences_.size(); i-- > 0;) {
    Sequence& sequence = *sequences_[i];
    if (&sequence == &except) return nullptr;
    if (sequence.state == Sequence::State::kRunning) return &sequence;
  }
  return nullptr;
}

// Its tokens stay; its KV is loaded from the store, or computed, when it is admitted again.
void EngineCore::Preempt(Sequence& sequence) {
  ReleaseBlocks(sequence);
  sequence.computed = 0;
  sequence.preempted = true;
  sequence.state = Sequence::State::kWaiting;
}

void EngineCore::Compute(const std::vector<Sequence*>& running,
                         const std::vector<BatchShare>& shares) {
  const uint32_t vocab = backend_.shape().vocab;
  std::vector<SequenceStep> steps;
  size_t rows = 0;
  uint32_t tokens = 0;
  for (const BatchShare& share : shares) {
    const Sequence& sequence = *running[share.sequence];
    const bool ends = share.tokens == sequence.pending();
    steps.push_back({.tokens = std::span(sequence.tokens).subspan(sequence.computed, share.tokens),
                     .position = sequence.computed,
                     .blocks = sequence.blocks,
                     .wants_logits = ends});
    rows += ends ? 1 : 0;
    tokens += share.tokens;
  }
  logits_.resize(rows * vocab);

  const kv::Instant begin = clock_.Now();
  backend_.Step(steps, logits_);
  if (tokens >= kMeasuredTokensMin) {
    const double measured = static_cast<double>((clock_.Now() - begin).value) * 1e-9 / tokens;
    seconds_per_token_ = seconds_per_token_ == 0
                             ? measured
                             : (1 - kSmoothing) * seconds_per_token_ + kSmoothing * measured;
  }

  size_t row = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    Sequence& sequence = *running[shares[i].sequence];
    sequence.computed += shares[i].tokens;
    QueueSave(sequence);
    if (steps[i].wants_logits) {
      Advance(sequence, std::span<const float>(logits_).subspan(vocab * row++, vocab));
    }
  }
  PumpSaves();
}

void EngineCore::Advance(Sequence& sequence, std::span<const float> logits) {
  if (!sequence.started) {
    sequence.started = true;
    sequence.job.listener->OnStart(sequence.usage());
  }
  const TokenId token = sequence.sampler.Sample(logits);
  ++stats_.completion_tokens;
  sequence.tokens.push_back(token);
  if (codec_.EndsAnswer(token)) {
    Emit(sequence, sequence.stop.Add(sequence.text->Finish()) + sequence.stop.Finish());
    return End(sequence, FinishReason::kStop, kv::Status());
  }
  Emit(sequence, sequence.stop.Add(sequence.text->Add(token)));
  if (sequence.stop.stopped()) return End(sequence, FinishReason::kStop, kv::Status());
  if (sequence.completion_tokens() == sequence.job.completion_tokens_max) {
    Emit(sequence, sequence.stop.Add(sequence.text->Finish()) + sequence.stop.Finish());
    End(sequence, FinishReason::kLength, kv::Status());
  }
}

void EngineCore::Emit(Sequence& sequence, const std::string& text) {
  if (!text.empty()) sequence.job.listener->OnText(text);
}

// Hands the blocks that have filled up to the save queue; each carries a reference of its own, so
// the sequence may end, or be preempted, before they are written.
void EngineCore::QueueSave(Sequence& sequence) {
  sequence.chain.Extend(sequence.tokens);
  const uint32_t full = sequence.computed / block_tokens_;
  if (full <= sequence.saved_blocks) return;
  SaveJob job{.chain = sequence.chain.ids(), .first = sequence.saved_blocks, .blocks = {}};
  job.chain.resize(full);
  for (uint32_t i = sequence.saved_blocks; i < full; ++i) {
    pool_.AddReference(sequence.blocks[i]);
    job.blocks.push_back(sequence.blocks[i]);
    being_saved_.emplace(job.chain[i], sequence.blocks[i]);
  }
  sequence.saved_blocks = full;
  saves_.push_back(std::move(job));
}

void EngineCore::PumpSaves() {
  while (!saves_.empty() && saves_in_flight_ < options_.save_blocks_max) {
    SaveJob job = std::move(saves_.front());
    saves_.pop_front();
    saves_in_flight_ += static_cast<uint32_t>(job.blocks.size());
    store_.Save(job.chain, job.first, job.blocks, [this, job](uint32_t saved) {
      options_.post([this, job, saved] { OnSaved(job, saved); });
    });
  }
}

void EngineCore::OnSaved(const SaveJob& job, uint32_t saved) {
  const auto count = static_cast<uint32_t>(job.blocks.size());
  saves_in_flight_ -= count;
  stats_.blocks_saved += saved;
  stats_.block_saves_failed += count - saved;
  for (uint32_t i = 0; i < count; ++i) {
    const auto found = being_saved_.find(job.chain[job.first + i]);
    if (found != being_saved_.end() && found->second == job.blocks[i]) being_saved_.erase(found);
    pool_.Release(job.blocks[i]);
  }
  PumpSaves();
}

void EngineCore::End(Sequence& sequence, FinishReason reason, const kv::Status& status) {
  ReleaseBlocks(sequence);
  switch (reason) {
    case FinishReason::kStop:
    case FinishReason::kLength: ++stats_.requests_finished; break;
    case FinishReason::kCancelled: ++stats_.requests_cancelled; break;
    case FinishReason::kError: ++stats_.requests_failed; break;
  }
  sequence.job.listener->OnEnd(reason, sequence.usage(), status);
  std::erase_if(sequences_, [&](const auto& owned) { return owned.get() == &sequence; });
}

void EngineCore::ReleaseBlocks(Sequence& sequence) {
  TakeBorrowed(sequence, 0);
  for (const BlockIndex block : sequence.blocks) pool_.Release(block);
  sequence.blocks.clear();
}

}  // namespace cairn::engine
