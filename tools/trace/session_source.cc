// Reads whole sessions, one a line and run-length encoded, and merges them by time.
#include <simdjson.h>

#include <cmath>
#include <queue>

#include "kvstore/base/random.h"
#include "tools/trace/line_reader.h"
#include "tools/trace/sources.h"

namespace cairn::tools {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

constexpr uint64_t kBlocksPerRequestMax = UINT64_C(1) << 24;
constexpr uint64_t kTokensMax = UINT64_C(1) << 40;
constexpr uint64_t kLocalIdMax = UINT64_C(1) << 40;

kv::Status Broken(std::string message) { return {kv::Code::kCorrupt, std::move(message)}; }

struct Turn {
  int64_t time_ms = 0;
  uint64_t input_tokens = 0;
  uint64_t output_tokens = 0;
  uint64_t agent = 0;
  size_t runs_begin = 0;
  size_t runs_end = 0;
};

struct Session {
  uint64_t line = 0;
  std::vector<Turn> turns;
  std::vector<std::pair<uint64_t, uint64_t>> runs;  // First id and length.
  size_t next = 0;
};

kv::Status ReadRuns(const array& encoded, uint64_t blocks_max, Session& session) {
  uint64_t first = 0;
  uint64_t blocks = 0;
  bool have_first = false;
  for (const element value : encoded) {
    uint64_t number = 0;
    if (value.get_uint64().get(number)) return Broken("a run of block ids is not a number");
    if (have_first) {
      blocks += number;
      if (number > blocks_max || blocks > blocks_max)
        return Broken("more blocks than the prompt has");
      if (first + number > kLocalIdMax) return Broken("a block id is impossibly large");
      session.runs.emplace_back(first, number);
    }
    first = number;
    have_first = !have_first;
  }
  return have_first ? Broken("a run of block ids has no length") : kv::Status();
}

// [t_s, in, out, think_s, api_s, agent, [start, len, ...]]
kv::Status ReadTurn(const element& value, uint64_t block_tokens, Session& session) {
  array fields;
  array runs;
  double time_s = 0;
  Turn turn;
  if (value.get_array().get(fields) || fields.size() < 7)
    return Broken("a request has not 7 fields");
  if (fields.at(0).get_double().get(time_s) || !std::isfinite(time_s) || std::abs(time_s) > 1e12) {
    return Broken("a request's time is not a number of seconds");
  }
  if (fields.at(1).get_uint64().get(turn.input_tokens) ||
      fields.at(2).get_uint64().get(turn.output_tokens)) {
    return Broken("a request's lengths are not whole numbers of tokens");
  }
  if (turn.input_tokens > kTokensMax || turn.output_tokens > kTokensMax) {
    return Broken("a request's lengths are impossibly large");
  }
  if (fields.at(5).get_uint64().get(turn.agent)) turn.agent = 0;
  if (fields.at(6).get_array().get(runs)) return Broken("a request has no list of runs");
  turn.time_ms = static_cast<int64_t>(std::llround(time_s * 1'000));
  turn.runs_begin = session.runs.size();
  const uint64_t blocks_max = turn.input_tokens / block_tokens + 1;
  KV_RETURN_IF_ERROR(ReadRuns(runs, std::min(blocks_max, kBlocksPerRequestMax), session));
  turn.runs_end = session.runs.size();
  session.turns.push_back(turn);
  return kv::Status();
}

class SessionSource : public TraceSource {
 public:
  explicit SessionSource(const TraceOptions& options) : options_(options) {}

  kv::Status Load(LineReader lines) {
    simdjson::dom::parser parser;
    kv::Random random(options_.seed);
    while (true) {
      std::string_view line;
      KV_ASSIGN_OR_RETURN(const LineReader::Outcome outcome, lines.Next(line));
      if (outcome == LineReader::Outcome::kEnd) break;
      Session session;
      session.line = lines.line_number();
      const kv::Status parsed = outcome == LineReader::Outcome::kTooLong
                                    ? Broken("is longer than a line may be")
                                    : Parse(parser, line, session);
      if (!parsed.ok()) {
        std::string issue = "line " + std::to_string(session.line) + ": " + parsed.message();
        if (options_.broken_lines == BrokenLines::kRefuse) return Broken(std::move(issue));
        issues_.AddSkipped(std::move(issue));
        continue;
      }
      const auto spread = static_cast<uint64_t>(std::max<int64_t>(options_.spread_ms, 1));
      const auto start_ms = static_cast<int64_t>(random.Below(spread));
      for (Turn& turn : session.turns) turn.time_ms += start_ms;
      sessions_.push_back(std::move(session));
    }
    for (size_t i = 0; i < sessions_.size(); ++i) Schedule(i);
    return kv::Status();
  }

  kv::Result<bool> Next(Request& request) override {
    if (pending_.empty()) return false;
    const size_t index = pending_.top().session;
    pending_.pop();
    Session& session = sessions_[index];
    const Turn& turn = session.turns[session.next++];
    request = {.time_ms = turn.time_ms,
               .input_tokens = turn.input_tokens,
               .output_tokens = turn.output_tokens,
               .session = index + 1,
               .agent = turn.agent,
               .line = session.line,
               .blocks = std::move(request.blocks)};
    request.blocks.clear();
    // Ids are local to their session.
    const uint64_t base = (index + 1) << 40;
    for (size_t run = turn.runs_begin; run < turn.runs_end; ++run) {
      const auto [first, length] = session.runs[run];
      for (uint64_t i = 0; i < length; ++i) request.blocks.push_back(base + first + i);
    }
    Schedule(index);
    return true;
  }
  uint64_t block_tokens() const override { return block_tokens_; }
  bool has_partial_blocks() const override { return false; }
  const TraceIssues& issues() const override { return issues_; }

 private:
  struct Pending {
    int64_t time_ms;
    size_t session;
    bool operator<(const Pending& other) const {  // The earliest is on top.
      return std::pair(time_ms, session) > std::pair(other.time_ms, other.session);
    }
  };

  kv::Status Parse(simdjson::dom::parser& parser, std::string_view line, Session& session) {
    object record;
    array turns;
    uint64_t block_tokens = 0;
    if (parser.parse(line.data(), line.size()).get_object().get(record)) {
      return Broken("is not a JSON object");
    }
    if (record.at_key("block_size").get_uint64().get(block_tokens) || block_tokens == 0) {
      return Broken("has no block_size above zero");
    }
    if (!sessions_.empty() && block_tokens != block_tokens_) return Broken("block_size changes");
    if (record.at_key("req").get_array().get(turns)) return Broken("has no list 'req'");
    block_tokens_ = block_tokens;
    for (const element turn : turns) KV_RETURN_IF_ERROR(ReadTurn(turn, block_tokens, session));
    std::stable_sort(session.turns.begin(), session.turns.end(),
                     [](const Turn& a, const Turn& b) { return a.time_ms < b.time_ms; });
    return kv::Status();
  }

  void Schedule(size_t index) {
    const Session& session = sessions_[index];
    if (session.next < session.turns.size()) {
      pending_.push({session.turns[session.next].time_ms, index});
    }
  }

  const TraceOptions options_;
  std::vector<Session> sessions_;
  std::priority_queue<Pending> pending_;
  TraceIssues issues_;
  uint64_t block_tokens_ = 64;
};

}  // namespace

SourceResult OpenSessionSource(const std::string& path, const TraceOptions& options) {
  KV_ASSIGN_OR_RETURN(LineReader lines, LineReader::Open(path));
  auto source = std::make_unique<SessionSource>(options);
  KV_RETURN_IF_ERROR(source->Load(std::move(lines)));
  return std::unique_ptr<TraceSource>(std::move(source));
}

}  // namespace cairn::tools
