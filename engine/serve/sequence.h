// One request inside the engine core: its tokens, its KV blocks and where it stands.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/engine.h"
#include "engine/cache/prefix_chain.h"
#include "engine/compute/kv_pool.h"
#include "engine/schedule/sampler.h"
#include "engine/schedule/stop_matcher.h"
#include "engine/serve/text_codec.h"

namespace cairn::engine {

// A request as it enters the core: checked, rendered, with its limits resolved.
struct Job {
  RequestId id;
  std::vector<TokenId> prompt;  // 1..context - 1 tokens.
  uint32_t completion_tokens_max = 0;
  SamplingParams sampling;
  std::vector<std::string> stop;
  std::shared_ptr<GenerateListener> listener;
};

struct Sequence {
  enum class State : uint8_t {
    kWaiting,  // For KV blocks.
    kLoading,  // A lookup or a load is in flight; the store may be writing into `blocks`.
    kRunning,  // Takes part in steps.
  };

  Sequence(Job new_job, uint32_t block_tokens, uint64_t seed, std::unique_ptr<TextStream> new_text)
      : job(std::move(new_job)),
        tokens(job.prompt),
        chain(block_tokens),
        sampler(job.sampling, seed),
        stop(job.stop),
        text(std::move(new_text)) {}

  uint32_t pending() const { return static_cast<uint32_t>(tokens.size()) - computed; }
  uint32_t completion_tokens() const {
    return static_cast<uint32_t>(tokens.size() - job.prompt.size());
  }
  Usage usage() const {
    return {static_cast<uint32_t>(job.prompt.size()), cached_tokens, completion_tokens()};
  }

  const Job job;
  State state = State::kWaiting;
  bool cancelled = false;
  bool started = false;    // The listener has heard OnStart.
  bool preempted = false;  // Once or more: what it loads again it may have computed itself.

  std::vector<TokenId> tokens;  // The prompt, then what was generated.
  uint32_t computed = 0;        // Of `tokens`: their KV is in `blocks`.
  uint32_t cached_tokens = 0;   // Of the prompt: loaded when it was admitted first.
  uint32_t saved_blocks = 0;    // Of the chain: known to the store, or handed to it.
  std::vector<BlockIndex> blocks;
  // While it is looked up: those blocks of the prompt that are on their way to the store, each with
  // a reference. Empty, or one for each block that may be loaded.
  std::vector<std::optional<BlockIndex>> borrowed;
  PrefixChain chain;

  Sampler sampler;
  StopMatcher stop;
  std::unique_ptr<TextStream> text;
};

}  // namespace cairn::engine
