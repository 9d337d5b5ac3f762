// Finds what kills prefix caching in a log of requests: the causes that servers were burnt by.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/planner/explain.h"
#include "tools/trace/text_log.h"

namespace cairn::tools {

struct LintFinding {
  std::string rule;
  std::string advice;
  uint64_t requests = 0;
  uint64_t lost_bytes = 0;  // Of prompts that could have been hits.
  uint64_t first_line = 0;
  uint64_t last_line = 0;
  std::string example;
};

// Give it the requests in order; keeps the last request of each of a bounded number of sessions.
class RequestLinter {
 public:
  static constexpr size_t kSessionsMax = 1'000;

  void Add(const TextRequest& request);
  // The costliest first.
  std::vector<LintFinding> Findings() const;
  uint64_t requests() const { return requests_; }

 private:
  struct Remembered {
    TextRequest request;
    uint64_t order = 0;
  };
  void LintAlone(const TextRequest& request);
  void LintPair(const TextRequest& earlier, const TextRequest& later);
  void Report(const char* rule, const TextRequest& request, uint64_t lost_bytes,
              std::string example);
  void Remember(const TextRequest& request);

  std::map<uint64_t, Remembered> last_of_session_;
  std::map<std::string, LintFinding> findings_;
  uint64_t requests_ = 0;
};

std::string LintText(const RequestLinter& linter);
std::string LintJson(const RequestLinter& linter);
std::string LintHtml(const RequestLinter& linter, const std::string& title);

}  // namespace cairn::tools
