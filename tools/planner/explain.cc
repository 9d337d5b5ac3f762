// Tells new turns from rewritten prefixes, and both from what time and space took away.
#include "tools/planner/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/planner/plot.h"
#include "tools/planner/quantity.h"
#include "tools/planner/table.h"

namespace cairn::tools {
namespace {

constexpr size_t kSnippetBefore = 24;
constexpr size_t kSnippetAfter = 32;

std::string Joined(const std::vector<Piece>& pieces) {
  std::string text;
  for (const Piece& piece : pieces) text += piece.text;
  return text;
}

std::string Snippet(const std::string& text, size_t at) {
  const size_t begin = at - std::min(at, kSnippetBefore);
  std::string snippet = text.substr(begin, at - begin + kSnippetAfter);
  for (char& c : snippet) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return snippet;
}

std::string ReasonOf(const std::string& part) {
  if (part.starts_with("tools")) return "tools_changed";
  if (IsSystemPart(part)) return "system_changed";
  return "messages_changed";
}

}  // namespace

uint64_t TurnKey(const Request& request) { return request.session * 1'000'003 + request.agent; }

bool IsSystemPart(std::string_view part) {
  return part == "system" || part == "instructions" || part.ends_with(".system") ||
         part.ends_with(".developer");
}

std::string_view MissReasonName(MissReason reason) {
  switch (reason) {
    case MissReason::kNone:
      return "all hit";
    case MissReason::kGrown:
      return "new turn";
    case MissReason::kFirst:
      return "first request of a session";
    case MissReason::kChanged:
      return "prefix changed";
    case MissReason::kExpired:
      return "expired";
    case MissReason::kEvicted:
      return "evicted";
    case MissReason::kGoesOn:
      return "goes on from another prompt";
    case MissReason::kLeaves:
      return "leaves another prompt";
    case MissReason::kUnlike:
      return "unlike any before";
  }
  return "";
}

std::string_view MissAdvice(MissReason reason) {
  switch (reason) {
    case MissReason::kChanged:
      return "find what rewrites the prompt: cairn trace lint";
    case MissReason::kExpired:
      return "a longer TTL would have kept it";
    case MissReason::kEvicted:
      return "more capacity would have kept it";
    case MissReason::kFirst:
      return "share system prompts and tools across sessions";
    case MissReason::kGrown:
      return "ordinary; answers written back save their part";
    case MissReason::kGoesOn:
      return "the trace names no session: most likely a new turn";
    case MissReason::kLeaves:
      return "the trace names no session: a prefix that changed, or the end of what sessions share";
    case MissReason::kUnlike:
      return "the trace names no session: most likely the first request of one";
    default:
      return "";
  }
}

Miss MissExplainer::Add(const Request& request) {
  stack_.Touch(request.blocks, distances_);
  Miss miss;
  uint32_t needed = 0;
  for (; miss.first_block < distances_.size(); ++miss.first_block) {
    const uint32_t distance = distances_[miss.first_block];
    if (distance == StackDistances::kCold) break;
    needed = std::max(needed, distance);
    miss.distance = needed;
    const Use& last = last_use_[request.blocks[miss.first_block]];
    miss.age_ms = request.time_ms - last.time_ms;
    miss.last_line = last.line;
    if (options_.ttl_ms > 0 && miss.age_ms > options_.ttl_ms) {
      miss.reason = MissReason::kExpired;
      break;
    }
    if (options_.capacity_blocks > 0 && needed > options_.capacity_blocks) {
      miss.reason = MissReason::kEvicted;
      break;
    }
  }
  miss.hit_tokens = TokensInBlocks(miss.first_block, options_.block_tokens, request.input_tokens);
  miss.missed_tokens = request.input_tokens - miss.hit_tokens;
  const bool known = miss.reason != MissReason::kNone;
  if (!known && miss.missed_tokens > 0) miss.reason = WhyNew(request, miss.first_block);
  Remember(request);
  return miss;
}

void MissExplainer::Remember(const Request& request) {
  const size_t full_blocks =
      std::min<size_t>(request.blocks.size(), request.input_tokens / options_.block_tokens);
  for (size_t i = 0; i < request.blocks.size(); ++i) {
    last_use_[request.blocks[i]] = {request.time_ms, request.line, i + 1 >= full_blocks};
  }
  if (request.session != 0) turns_[TurnKey(request)] = full_blocks;
}

MissReason MissExplainer::WhyNew(const Request& request, uint64_t first_block) const {
  if (request.session == 0) {
    if (first_block == 0) return MissReason::kUnlike;
    const Use& last = last_use_.at(request.blocks[first_block - 1]);
    return last.ends ? MissReason::kGoesOn : MissReason::kLeaves;
  }
  const auto found = turns_.find(TurnKey(request));
  if (found == turns_.end()) return MissReason::kFirst;
  return first_block < found->second ? MissReason::kChanged : MissReason::kGrown;
}

void MissSummary::Add(const Miss& miss) {
  Row& row = rows[miss.reason];
  ++row.requests;
  row.missed_tokens += miss.missed_tokens;
  input_tokens += miss.hit_tokens + miss.missed_tokens;
  hit_tokens += miss.hit_tokens;
}

namespace {

double HitRate(const MissSummary& summary) {
  return static_cast<double>(summary.hit_tokens) /
         static_cast<double>(std::max<uint64_t>(1, summary.input_tokens));
}

Table ReasonTable(const MissSummary& summary) {
  const auto all = static_cast<double>(std::max<uint64_t>(1, summary.input_tokens));
  Table table({"First miss", ">requests", ">missed tokens", ">of the prompts", ""});
  for (const auto& [reason, row] : summary.rows) {
    const auto missed = static_cast<double>(row.missed_tokens);
    table.Add({std::string(MissReasonName(reason)),
               WithCommas(static_cast<double>(row.requests), 0),
               FormatQuantity(missed, Unit::kTokens), fmt::format("{:.2f} %", missed / all * 100),
               std::string(MissAdvice(reason))});
  }
  return table;
}

}  // namespace

std::string MissSummary::ToText() const {
  return fmt::format("Hit rate {:.2f} %\n", HitRate(*this) * 100) + ReasonTable(*this).ToText();
}

std::string MissSummary::ToHtml(const std::string& title) const {
  std::vector<Bar> bars = {
      {"hit", static_cast<double>(hit_tokens), fmt::format("{:.2f} %", HitRate(*this) * 100)}};
  const auto all = static_cast<double>(std::max<uint64_t>(1, input_tokens));
  for (const auto& [reason, row] : rows) {
    if (reason == MissReason::kNone) continue;
    const auto missed = static_cast<double>(row.missed_tokens);
    bars.push_back({std::string(MissReasonName(reason)), missed,
                    fmt::format("{:.2f} %", missed / all * 100)});
  }
  return HtmlPage(title, fmt::format("<p><b>Hit rate {:.2f} %</b></p>\n", HitRate(*this) * 100) +
                             BarSvg("Prompt tokens, by what became of them", bars) +
                             ReasonTable(*this).ToHtml());
}

std::string MissSummary::ToJson() const {
  nlohmann::ordered_json json = {{"input_tokens", input_tokens},
                                 {"hit_tokens", hit_tokens},
                                 {"hit_rate", HitRate(*this)},
                                 {"reasons", nlohmann::ordered_json::array()}};
  for (const auto& [reason, row] : rows) {
    json["reasons"].push_back({{"reason", MissReasonName(reason)},
                               {"requests", row.requests},
                               {"missed_tokens", row.missed_tokens},
                               {"advice", MissAdvice(reason)}});
  }
  return json.dump(2) + "\n";
}

TextChange CompareTexts(const TextRequest& earlier, const TextRequest& later) {
  const std::string before = Joined(earlier.pieces);
  const std::string after = Joined(later.pieces);
  const size_t shared_max = std::min(before.size(), after.size());
  const auto end = before.begin() + static_cast<std::ptrdiff_t>(shared_max);
  const auto at =
      static_cast<size_t>(std::mismatch(before.begin(), end, after.begin()).first - before.begin());
  TextChange change;
  change.byte = at;
  change.lost_bytes = before.size() - at;
  if (earlier.model != later.model) {
    change.differs = true;
    change.reason = "model_changed";
    change.byte = 0;
    change.lost_bytes = before.size();
    change.earlier = earlier.model;
    change.later = later.model;
    return change;
  }
  if (at == before.size()) return change;
  change.differs = true;
  uint64_t begin = 0;
  for (const Piece& piece : later.pieces) {
    change.part = piece.part;
    begin += piece.text.size();
    if (begin > at) break;
  }
  change.reason = ReasonOf(change.part);
  change.earlier = Snippet(before, at);
  change.later = Snippet(after, at);
  return change;
}

}  // namespace cairn::tools
