// Request logs that hold the text itself: OpenAI Chat and Responses bodies, Anthropic Messages, and
// plain {"input", "output", "session_id"} records.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/trace/line_reader.h"
#include "tools/trace/trace_source.h"

namespace cairn::tools {

// A named stretch of the prompt, in the order in which a model would read it.
struct Piece {
  std::string part;  // "tools[2]", "system", "messages[4].user", "prompt".
  std::string text;  // Caching hints are left out: they never reach the model.
};

struct TextRequest {
  Request base;  // blocks are filled by TextLog::Chain.
  std::string model;
  std::vector<Piece> pieces;
  std::optional<uint64_t> cached_tokens;  // What the server reported, where the log says it.

  uint64_t bytes() const;
};

// What comes of lines that have no time, or one that runs back.
enum class WrongTimes { kTell, kLeave };

class TextLog {
 public:
  static kv::Result<TextLog> Open(const std::string& path, BrokenLines broken_lines,
                                  WrongTimes wrong_times, uint32_t bytes_per_token);
  TextLog(TextLog&&) noexcept;
  ~TextLog();

  // False at the end.
  kv::Result<bool> Next(TextRequest& request);
  const TraceIssues& issues() const;

 private:
  struct State;
  explicit TextLog(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The ids of the full blocks of `block_bytes` of the prompt, chained: a SHA-256 over all before.
std::vector<uint64_t> ChainOf(const TextRequest& request, uint64_t block_bytes);

}  // namespace cairn::tools
