// Changes to a trace that keep its reuse: a sample, more load, other names for everything.
#pragma once

#include <memory>
#include <string>

#include "tools/trace/trace_source.h"

namespace cairn::tools {

struct SampleOptions {
  double share = 1;  // Of the sessions, in (0, 1].
  // Where requests have no session, those that share this many leading blocks stay together.
  uint32_t root_blocks = 3;
  uint64_t seed = 1;
};
// Keeps whole sessions, so that what reuses each other stays together.
kv::Result<std::unique_ptr<TraceSource>> Sample(std::unique_ptr<TraceSource> source,
                                                const SampleOptions& options);

struct ScaleOptions {
  uint32_t copies = 1;         // Each session becomes this many, with block ids of their own.
  uint32_t shared_blocks = 0;  // These leading blocks stay common to all copies (a system prompt).
  double time_scale = 1;       // 0.5 = twice as fast.
  int64_t jitter_ms = 60'000;  // Each copy of a session starts this much later at most.
  uint64_t seed = 1;
};
// More load with the same reuse inside each copy. Holds the requests of `jitter_ms` in memory.
kv::Result<std::unique_ptr<TraceSource>> Scale(std::unique_ptr<TraceSource> source,
                                               const ScaleOptions& options);

// Replaces block ids and sessions by HMAC-SHA256 of them under `key`, and lets time start at 0:
// equal blocks stay equal, and nobody without the key can link them to others. The key has 16 B or
// more.
kv::Result<std::unique_ptr<TraceSource>> Anonymise(std::unique_ptr<TraceSource> source,
                                                   std::string key);

}  // namespace cairn::tools
