// A stream of requests in the order of time, and how to open one from a file of any known format.
#pragma once

#include <memory>
#include <string>

#include "kvstore/base/result.h"
#include "tools/trace/request.h"

namespace cairn::tools {

class TraceSource {
 public:
  virtual ~TraceSource() = default;
  // False at the end; `request` is then unchanged.
  virtual kv::Result<bool> Next(Request& request) = 0;
  // Of the blocks that Next() yields.
  virtual uint64_t block_tokens() const = 0;
  // Whether a prompt's last block has an id even when it is not full.
  virtual bool has_partial_blocks() const = 0;
  virtual const TraceIssues& issues() const = 0;
};

enum class TraceFormat {
  kAuto,      // Told from the keys of the first line.
  kMooncake,  // {"timestamp": ms, "input_length", "output_length", "hash_ids"}, 512-token blocks.
  kBailian,   // {"chat_id", "parent_chat_id", "timestamp": s, ..., "hash_ids"}, 16-token blocks.
  kSessions,  // One session a line, {"id", "block_size", "req": [[t, in, out, ..., [start, len]]]}.
  kText,      // OpenAI request logs and other records that hold the text itself.
};
kv::Result<TraceFormat> ParseTraceFormat(std::string_view name);

enum class BrokenLines { kSkip, kRefuse };

struct TraceOptions {
  TraceFormat format = TraceFormat::kAuto;
  BrokenLines broken_lines = BrokenLines::kSkip;
  // 0 = as recorded. Else a multiple of it: blocks are joined, keeping what is shared.
  uint64_t block_tokens = 0;
  // Sessions: each starts at a random point of this span (0 = all at the same time).
  int64_t spread_ms = 0;
  uint64_t seed = 1;
  // Text: how many bytes stand for a token, since no tokenizer is at hand.
  uint32_t bytes_per_token = 4;
};

kv::Result<std::unique_ptr<TraceSource>> OpenTrace(const std::string& path,
                                                   const TraceOptions& options);

}  // namespace cairn::tools
