// One rule for each known way to lose a prefix.
#include "tools/planner/lint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "tools/planner/clock_words.h"
#include "tools/planner/plot.h"
#include "tools/planner/quantity.h"
#include "tools/planner/table.h"
#include "tools/trace/sources.h"

namespace cairn::tools {
namespace {

struct Rule {
  const char* name;
  const char* advice;
};
constexpr std::array kRules = {
    Rule{"billing-header",
         "drop the x-anthropic-billing-header block before rendering: its cch= "
         "differs between conversations, and in old clients between requests"},
    Rule{"remaining-tokens", "move '<total_tokens> ... left' out of the system prompt, to the end"},
    Rule{"clock-in-prefix", "move dates and times to the last message, or round them to the day"},
    Rule{"id-in-prefix", "move request, session and user ids out of the system prompt"},
    Rule{"tools-reordered", "send tools in one fixed order"},
    Rule{"json-key-order", "serialise tools with a fixed order of keys"},
    Rule{"tools-changed", "add tools at the end, or keep them constant within a session"},
    Rule{"system-hoisted",
         "leave system messages where they stand: moving them to the top rewrites all"},
    Rule{"system-changed", "keep the system prompt constant within a session"},
    Rule{"history-edited",
         "append to the history; do not trim, summarise or re-render earlier turns"},
    Rule{"model-changed", "KV of one model is of no use to another: route a session to one model"},
    Rule{"server-recomputes",
         "the prefix was the same and the server missed it: look for window or "
         "recurrent state without checkpoints, routing, or a short TTL"},
};

const char* AdviceOf(std::string_view name) {
  for (const Rule& rule : kRules) {
    if (rule.name == name) return rule.advice;
  }
  return "";
}

bool Digit(char c) { return c >= '0' && c <= '9'; }
bool Hex(char c) { return Digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// The run of characters without spaces and quotes around `at`.
std::string_view WordAt(std::string_view text, size_t at) {
  constexpr std::string_view kEnds = " \n\t\"',()";
  size_t begin = std::min(at, text.size());
  while (begin > 0 && kEnds.find(text[begin - 1]) == kEnds.npos) --begin;
  const size_t end = std::min(text.find_first_of(kEnds, at), text.size());
  return text.substr(begin, end - begin);
}

// 12:30:05, 2026-11-29, 29/11/2026: digits with at least two separators of one kind.
bool LooksLikeClock(std::string_view word) {
  const auto digits = std::count_if(word.begin(), word.end(), Digit);
  for (const char separator : {':', '-', '/'}) {
    if (digits >= 4 && digits <= 20 && std::count(word.begin(), word.end(), separator) >= 2) {
      return std::none_of(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'f'; });
    }
  }
  return false;
}

// UUIDs, hexadecimal and long decimal numbers.
bool LooksLikeId(std::string_view word) {
  const auto hex = std::count_if(word.begin(), word.end(), Hex);
  const auto digits = std::count_if(word.begin(), word.end(), Digit);
  return hex >= 8 && digits >= 2 && hex * 4 >= static_cast<std::ptrdiff_t>(word.size()) * 3;
}

std::vector<std::string> TextsOf(const TextRequest& request, std::string_view part) {
  std::vector<std::string> texts;
  for (const Piece& piece : request.pieces) {
    if (piece.part.starts_with(part)) texts.push_back(piece.text);
  }
  return texts;
}

// With the keys of every object in one order.
std::vector<std::string> Normalised(const std::vector<std::string>& texts) {
  std::vector<std::string> sorted;
  for (const std::string& text : texts) {
    const auto json = nlohmann::json::parse(text, nullptr, false);
    sorted.push_back(json.is_discarded()
                         ? text
                         : json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  return sorted;
}

const char* ToolsRule(const TextRequest& earlier, const TextRequest& later) {
  std::vector<std::string> before = TextsOf(earlier, "tools");
  std::vector<std::string> after = TextsOf(later, "tools");
  if (Normalised(before) == Normalised(after)) return "json-key-order";
  std::sort(before.begin(), before.end());
  std::sort(after.begin(), after.end());
  return before == after ? "tools-reordered" : "tools-changed";
}

// A system message of the middle of the earlier list is now part of an earlier place.
bool Hoisted(const TextRequest& earlier, const TextRequest& later, const TextChange& change) {
  const std::string later_head = [&] {
    std::string head;
    for (const Piece& piece : later.pieces) {
      head += piece.text;
      if (piece.part == change.part) break;
    }
    return head;
  }();
  bool middle = false;
  for (const Piece& piece : earlier.pieces) {
    const bool system = piece.part.ends_with(".system");
    if (system && middle && piece.text.size() > 8) {
      const auto json = nlohmann::json::parse(piece.text, nullptr, false);
      const std::string text =
          json.is_object() && json.contains("content") && json["content"].is_string()
              ? json["content"].get<std::string>()
              : piece.text;
      if (later_head.find(text) != std::string::npos) return true;
    }
    if (piece.part.starts_with("messages[") && !system) middle = true;
  }
  return false;
}

const char* ChangeRule(const TextRequest& earlier, const TextRequest& later,
                       const TextChange& change) {
  if (change.reason == "model_changed") return "model-changed";
  if (Hoisted(earlier, later, change)) return "system-hoisted";
  if (change.reason == "tools_changed") return ToolsRule(earlier, later);
  const std::string all = change.later;
  if (all.find("total_tokens") != all.npos || all.find("tokens left") != all.npos) {
    return "remaining-tokens";
  }
  if (all.find("cch=") != all.npos || all.find("billing-header") != all.npos)
    return "billing-header";
  const size_t at = std::min<size_t>(all.size(), std::min<uint64_t>(change.byte, 24));
  const std::string_view word = WordAt(all, at);
  if (LooksLikeClock(word)) return "clock-in-prefix";
  // As people write it, there before and there now.
  if (IsInDateOrTime(all, at) && IsInDateOrTime(change.earlier, at)) return "clock-in-prefix";
  if (LooksLikeId(word)) return "id-in-prefix";
  return change.reason == "system_changed" ? "system-changed" : "history-edited";
}

// Where a log names no sessions, requests are of one conversation when it begins with the same
// message: whoever holds it sends all of it again.
uint64_t ConversationOf(const TextRequest& request) {
  if (request.base.session != 0) return TurnKey(request.base);
  for (const Piece& piece : request.pieces) {
    const bool is_before = piece.part.starts_with("tools") || IsSystemPart(piece.part);
    if (!is_before) return SessionNumber(piece.text);
  }
  return 0;
}

}  // namespace

void RequestLinter::Add(const TextRequest& request) {
  ++requests_;
  LintAlone(request);
  const auto last = last_of_session_.find(ConversationOf(request));
  if (last != last_of_session_.end()) LintPair(last->second.request, request);
  Remember(request);
}

void RequestLinter::LintAlone(const TextRequest& request) {
  for (const Piece& piece : request.pieces) {
    const size_t header = piece.text.find("x-anthropic-billing-header");
    if (header == piece.text.npos || piece.text.find("cch=", header) == piece.text.npos) continue;
    return Report("billing-header", request, 0, piece.part);
  }
}

void RequestLinter::LintPair(const TextRequest& earlier, const TextRequest& later) {
  const TextChange change = CompareTexts(earlier, later);
  if (change.differs) {
    const char* rule = ChangeRule(earlier, later, change);
    Report(rule, later, change.lost_bytes,
           fmt::format("{}: '{}' was '{}'", change.part, change.later, change.earlier));
  } else if (later.cached_tokens.has_value() && earlier.base.input_tokens >= 256 &&
             *later.cached_tokens < earlier.base.input_tokens / 2) {
    Report("server-recomputes", later, earlier.bytes(),
           fmt::format("{} tokens cached of about {} shared", *later.cached_tokens,
                       earlier.base.input_tokens));
  }
}

void RequestLinter::Report(const char* rule, const TextRequest& request, uint64_t lost_bytes,
                           std::string example) {
  LintFinding& finding = findings_[rule];
  const bool is_first = finding.rule.empty();
  if (is_first || finding.last_line != request.base.line) ++finding.requests;
  finding.last_line = request.base.line;
  if (is_first) {
    finding.rule = rule;
    finding.advice = AdviceOf(rule);
    finding.first_line = request.base.line;
    finding.example = std::move(example);
  }
  finding.lost_bytes += lost_bytes;
}

void RequestLinter::Remember(const TextRequest& request) {
  last_of_session_[ConversationOf(request)] = {request, requests_};
  if (last_of_session_.size() <= kSessionsMax) return;
  last_of_session_.erase(std::min_element(
      last_of_session_.begin(), last_of_session_.end(),
      [](const auto& a, const auto& b) { return a.second.order < b.second.order; }));
}

std::vector<LintFinding> RequestLinter::Findings() const {
  std::vector<LintFinding> findings;
  for (const auto& [rule, finding] : findings_) findings.push_back(finding);
  std::stable_sort(
      findings.begin(), findings.end(),
      [](const LintFinding& a, const LintFinding& b) { return a.lost_bytes > b.lost_bytes; });
  return findings;
}

namespace {

std::string NothingFound(const RequestLinter& linter) {
  return fmt::format("{} requests: nothing that breaks prefixes was found\n", linter.requests());
}

Table FindingTable(const std::vector<LintFinding>& findings) {
  Table table({"Rule", ">requests", ">lost bytes", ">first line"});
  for (const LintFinding& finding : findings) {
    table.Add({finding.rule, WithCommas(static_cast<double>(finding.requests), 0),
               FormatQuantity(static_cast<double>(finding.lost_bytes), Unit::kBytes),
               std::to_string(finding.first_line)});
  }
  return table;
}

}  // namespace

std::string LintText(const RequestLinter& linter) {
  const std::vector<LintFinding> findings = linter.Findings();
  if (findings.empty()) return NothingFound(linter);
  std::string details;
  for (const LintFinding& finding : findings) {
    details += fmt::format("\n{}: {}.\n  {}\n", finding.rule, finding.advice, finding.example);
  }
  return FindingTable(findings).ToText() + details;
}

std::string LintHtml(const RequestLinter& linter, const std::string& title) {
  const std::vector<LintFinding> findings = linter.Findings();
  if (findings.empty()) {
    return HtmlPage(title, "<p>" + EscapeHtml(NothingFound(linter)) + "</p>\n");
  }
  std::vector<Bar> bars;
  std::string details;
  for (const LintFinding& finding : findings) {
    const auto bytes = static_cast<double>(finding.lost_bytes);
    bars.push_back({finding.rule, bytes, FormatQuantity(bytes, Unit::kBytes)});
    details += "<h2>" + EscapeHtml(finding.rule) + "</h2>\n<p>" + EscapeHtml(finding.advice) +
               ".</p>\n<pre>" + EscapeHtml(finding.example) + "</pre>\n";
  }
  return HtmlPage(title, BarSvg("Bytes of prompts that could have been hits", bars) +
                             FindingTable(findings).ToHtml() + details);
}

std::string LintJson(const RequestLinter& linter) {
  nlohmann::ordered_json json = {{"requests", linter.requests()},
                                 {"findings", nlohmann::ordered_json::array()}};
  for (const LintFinding& finding : linter.Findings()) {
    json["findings"].push_back({{"rule", finding.rule},
                                {"advice", finding.advice},
                                {"requests", finding.requests},
                                {"lost_bytes", finding.lost_bytes},
                                {"first_line", finding.first_line},
                                {"last_line", finding.last_line},
                                {"example", finding.example}});
  }
  // Examples are cut out of prompts, perhaps within a character.
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace cairn::tools
