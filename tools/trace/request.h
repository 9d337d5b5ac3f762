// One request of a trace, whatever format it came in.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kvstore/base/result.h"

namespace cairn::tools {

struct Request {
  int64_t time_ms = 0;
  uint64_t input_tokens = 0;
  uint64_t output_tokens = 0;
  uint64_t session = 0;  // 0 = unknown.
  uint64_t agent = 0;    // Tells sub-agents of one session apart; 0 = the main one.
  uint64_t line = 0;     // Where it stands in its file, from 1.
  // Root first. Each id stands for all tokens up to its block's end.
  std::vector<uint64_t> blocks = {};
};

// What was wrong with a trace, without keeping all of it.
struct TraceIssues {
  static constexpr size_t kShown = 5;
  uint64_t lines_skipped = 0;
  uint64_t lines_retimed = 0;  // Kept, but as late as the line before: see TraceClock.
  std::vector<std::string> first;  // "line 17: ...", at most kShown.

  bool any() const { return lines_skipped + lines_retimed > 0; }
  void AddSkipped(std::string issue) {
    ++lines_skipped;
    Show(std::move(issue));
  }
  void AddRetimed(std::string issue) {
    ++lines_retimed;
    Show(std::move(issue));
  }

 private:
  void Show(std::string issue) {
    if (first.size() < kShown) first.push_back(std::move(issue));
  }
};

}  // namespace cairn::tools
