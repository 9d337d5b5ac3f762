// Why a request was not a hit: the first block that differs, and the reason.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/cachesim/lru_curve.h"
#include "tools/trace/request.h"
#include "tools/trace/text_log.h"

namespace cairn::tools {

enum class MissReason : uint8_t {
  kNone,     // Everything was a hit.
  kGrown,    // The prompt goes on where the session's last one ended: an ordinary new turn.
  kFirst,    // The session's first request, beyond what it shares with others.
  kChanged,  // The session's last request had other tokens here: something rewrote the prefix.
  kExpired,  // The block was known, but for longer than the TTL not used.
  kEvicted,  // The block was known, but so many others were used since that it had to go.
  // --- New, of a request whose session the trace does not name. ---
  kGoesOn,  // It goes on where the last prompt with the same beginning ended.
  kLeaves,  // That prompt had other tokens here.
  kUnlike,  // No prompt before began as this one does.
};
std::string_view MissReasonName(MissReason reason);
// One sentence on what to do about it.
std::string_view MissAdvice(MissReason reason);

struct Miss {
  MissReason reason = MissReason::kNone;
  uint64_t first_block = 0;  // The first one that is no hit.
  uint64_t hit_tokens = 0;
  uint64_t missed_tokens = 0;
  int64_t age_ms = 0;     // Since the last use of the block, or of the last one that was known.
  uint64_t last_line = 0;  // Of that use; 0: no block was known.
  uint64_t distance = 0;  // Distinct blocks used since, where it was known.
};

struct ExplainOptions {
  uint64_t block_tokens = 0;
  int64_t ttl_ms = 0;            // 0 = none.
  uint64_t capacity_blocks = 0;  // 0 = unbounded.
};

// Whose last prompt the request goes on from: an agent of a session.
uint64_t TurnKey(const Request& request);

// Judges the requests of a trace in order.
class MissExplainer {
 public:
  explicit MissExplainer(const ExplainOptions& options) : options_(options) {}
  Miss Add(const Request& request);

 private:
  struct Use {
    int64_t time_ms = 0;
    uint64_t line = 0;
    bool ends = false;  // The last full block of its prompt, or one after it.
  };
  MissReason WhyNew(const Request& request, uint64_t first_block) const;
  void Remember(const Request& request);

  const ExplainOptions options_;
  StackDistances stack_;
  std::vector<uint32_t> distances_;
  std::unordered_map<uint64_t, Use> last_use_;  // By block.
  std::unordered_map<uint64_t, size_t> turns_;  // Full blocks of the last, by session and agent.
};

// Missed tokens by reason, for a whole trace.
struct MissSummary {
  struct Row {
    uint64_t requests = 0;
    uint64_t missed_tokens = 0;
  };
  std::map<MissReason, Row> rows;
  uint64_t input_tokens = 0;
  uint64_t hit_tokens = 0;

  void Add(const Miss& miss);
  std::string ToText() const;
  std::string ToJson() const;
  std::string ToHtml(const std::string& title) const;
};

// Of a system prompt, wherever the API puts it: "system", "messages[0].developer".
bool IsSystemPart(std::string_view part);

// Where two prompts first differ, as text.
struct TextChange {
  bool differs = false;
  std::string part;     // "system", "tools[3]", "messages[7].user", of the later prompt.
  std::string reason;   // model_changed, tools_changed, system_changed or messages_changed.
  uint64_t byte = 0;    // From the prompt's start.
  std::string earlier;  // A few bytes around the place, on one line.
  std::string later;
  uint64_t lost_bytes = 0;  // Of the earlier prompt that cannot be used again.
};
// An earlier prompt that is a prefix of the later one does not differ.
TextChange CompareTexts(const TextRequest& earlier, const TextRequest& later);

}  // namespace cairn::tools
