// Tables of figures, claims and codes.
#include "tools/planner/plan_print.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tools/planner/plot.h"
#include "tools/planner/table.h"

namespace cairn::tools {
namespace {

// Without the sign of a zero.
double Shown(double percent) { return std::abs(percent) < 0.05 ? 0 : percent; }

Table GroupTable(const FigureGroup& group) {
  Table table({group.title, ">", ""});
  for (const Figure& figure : group.figures) {
    table.Add({figure.label, FormatQuantity(figure.value, figure.unit), figure.how});
  }
  return table;
}

// The claims that should add up, or those that should not.
Table ClaimTable(const Plan& plan, bool adds_up) {
  Table table({adds_up ? "Published" : "Does not add up", ">claimed", ">planned", ">off by", ""});
  for (const ClaimCheck& check : plan.claims) {
    if (check.claim.adds_up != adds_up) continue;
    const bool expected = check.within == adds_up;
    table.Add({check.label, FormatQuantity(check.claimed, check.unit),
               FormatQuantity(check.planned, check.unit),
               fmt::format("{:+.1f} %", Shown(check.deviation * 100)),
               expected ? "" : "UNEXPECTED"});
  }
  return table;
}

bool HasClaims(const Plan& plan, bool adds_up) {
  for (const ClaimCheck& check : plan.claims) {
    if (check.claim.adds_up == adds_up) return true;
  }
  return false;
}

std::string Reasons(const Plan& plan) {
  std::string text;
  for (const ClaimCheck& check : plan.claims) {
    if (!check.claim.adds_up) text += fmt::format("- {}: {}\n", check.label, check.claim.note);
  }
  return text;
}

Bar BarOf(const Plan& plan, const char* id) {
  const Figure* figure = plan.Find(id);
  return {figure->label, figure->value, FormatQuantity(figure->value, figure->unit)};
}

std::string Headline(const Plan& plan) {
  const auto text = [&](const char* id) {
    const Figure* figure = plan.Find(id);
    return FormatQuantity(figure->value, figure->unit);
  };
  return fmt::format(
      "{} servers with {} SSDs ({}) keep {} of KV for {}. They serve {} GPUs, save {} more, and "
      "live {} "
      "at {} drive writes per day.",
      text("store.servers"), text("store.ssds"), text("store.raw_bytes"),
      text("store.logical_bytes"), text("retention.time"), text("gpu.count"),
      text("gpu.recompute_saved"), text("wear.life"), text("wear.dwpd"));
}

nlohmann::ordered_json TraceChoices(const TracePlan& trace) {
  const TraceReport& report = trace.report;
  nlohmann::ordered_json json = {{"requests", report.requests},
                                 {"span_s", static_cast<double>(report.span_ms) / 1e3},
                                 {"ideal", report.ideal},
                                 {"ideal_with_output", report.ideal_with_output},
                                 {"lines_skipped", report.issues.lines_skipped},
                                 {"lines_retimed", report.issues.lines_retimed},
                                 {"ttl", nlohmann::ordered_json::array()},
                                 {"capacity", nlohmann::ordered_json::array()},
                                 {"block", nlohmann::ordered_json::array()}};
  for (const TtlChoice& choice : trace.by_ttl) {
    json["ttl"].push_back({{"ttl_s", static_cast<double>(choice.ttl_ms) / 1e3},
                           {"hit_rate", choice.hit_rate},
                           {"fixed", choice.fixed},
                           {"tokens", choice.tokens},
                           {"raw_bytes", choice.raw_bytes},
                           {"servers", choice.servers},
                           {"gpus", choice.gpus},
                           {"gpus_saved", choice.gpus_saved},
                           {"beyond_span", choice.beyond_span}});
  }
  for (const CapacityChoice& choice : trace.by_capacity) {
    json["capacity"].push_back({{"trace_tokens", choice.trace_tokens},
                                {"tokens", choice.tokens},
                                {"raw_bytes", choice.raw_bytes},
                                {"hit_rate", choice.hit_rate}});
  }
  for (const BlockRow& row : report.by_block) {
    json["block"].push_back({{"tokens", row.tokens}, {"ideal", row.ideal}});
  }
  return json;
}

}  // namespace

std::string PlanText(const Plan& plan, const TracePlan* trace) {
  std::string text = fmt::format("{}\n{}\n", plan.name, Headline(plan));
  for (const std::string& note : plan.notes) text += "Note: " + note + "\n";
  for (const FigureGroup& group : plan.groups)
    text += fmt::format("\n{}", GroupTable(group).ToText());
  if (trace != nullptr) text += TracePlanText(*trace);
  if (HasClaims(plan, true)) text += fmt::format("\n{}", ClaimTable(plan, true).ToText());
  if (HasClaims(plan, false)) {
    text += fmt::format("\n{}{}", ClaimTable(plan, false).ToText(), Reasons(plan));
  }
  return text;
}

std::string PlanJson(const Plan& plan, const TracePlan* trace) {
  nlohmann::ordered_json json = {
      {"name", plan.name}, {"claims_hold", plan.ClaimsHold()}, {"notes", plan.notes}};
  nlohmann::ordered_json figures = nlohmann::ordered_json::object();
  for (const FigureGroup& group : plan.groups) {
    for (const Figure& figure : group.figures) figures[figure.id] = figure.value;
  }
  json["figures"] = std::move(figures);
  json["claims"] = nlohmann::ordered_json::array();
  for (const ClaimCheck& check : plan.claims) {
    json["claims"].push_back({{"figure", check.claim.figure},
                              {"claimed", check.claimed},
                              {"planned", check.planned},
                              {"within", check.within},
                              {"adds_up", check.claim.adds_up},
                              {"note", check.claim.note}});
  }
  if (trace != nullptr) json["trace"] = TraceChoices(*trace);
  return json.dump(2) + "\n";
}

std::string PlanHtml(const Plan& plan, const TracePlan* trace) {
  std::string body = "<p><b>" + EscapeHtml(Headline(plan)) + "</b></p>\n";
  for (const std::string& note : plan.notes) body += "<p>Note: " + EscapeHtml(note) + "</p>\n";
  body += BarSvg("What decides the number of servers",
                 {BarOf(plan, "store.servers_for_space"), BarOf(plan, "store.servers_for_reads"),
                  BarOf(plan, "store.servers_for_writes")});
  body += BarSvg("GPUs", {BarOf(plan, "gpu.prefill"), BarOf(plan, "gpu.decode"),
                          BarOf(plan, "gpu.recompute_saved")});
  if (plan.Find("money.per_gpu_hour") != nullptr) {
    body += BarSvg("Where revenue comes from",
                   {BarOf(plan, "money.hit_share"), BarOf(plan, "money.miss_share"),
                    BarOf(plan, "money.output_share")});
  }
  if (trace != nullptr) body += TracePlanHtml(*trace);
  for (const FigureGroup& group : plan.groups) body += GroupTable(group).ToHtml();
  if (HasClaims(plan, true)) body += ClaimTable(plan, true).ToHtml();
  if (HasClaims(plan, false)) {
    body += ClaimTable(plan, false).ToHtml() + "<ul>\n";
    for (const ClaimCheck& check : plan.claims) {
      if (!check.claim.adds_up) body += "<li>" + EscapeHtml(check.claim.note) + "</li>\n";
    }
    body += "</ul>\n";
  }
  return HtmlPage(plan.name, body);
}

namespace {

Table ReliabilityTable(const std::vector<CodeOutlook>& codes) {
  Table table({"Code", ">bytes", ">loses at", ">years to loss", ">Monte Carlo", ">+-",
               ">loss per year", ">nines", ">unreadable", ">Monte Carlo", ">+-"});
  for (const auto& [code, exact, played] : codes) {
    table.Add({CodeName(code), fmt::format("{:.2f}x", code.overhead()),
               fmt::format("{} lost", code.parity_shards + 1),
               fmt::format("{:.3g}", exact.years_to_loss),
               fmt::format("{:.3g}", played.years_to_loss),
               fmt::format("{:.1f} %", played.relative_error * 100),
               fmt::format("{:.2g}", exact.loss_per_year), fmt::format("{:.1f}", exact.nines),
               fmt::format("{:.3g}", exact.unavailable_share),
               fmt::format("{:.3g}", played.unavailable_share),
               fmt::format("{:.1f} %", played.unavailable_error * 100)});
  }
  return table;
}

}  // namespace

std::string ReliabilityText(const std::vector<CodeOutlook>& codes) {
  return ReliabilityTable(codes).ToText();
}

std::string ReliabilityHtml(const std::vector<CodeOutlook>& codes) {
  std::vector<Bar> durability, availability, space;
  for (const auto& [code, exact, played] : codes) {
    const std::string name = CodeName(code);
    const double readable = -std::log10(std::max(exact.unavailable_share, 1e-300));
    durability.push_back({name, exact.nines, fmt::format("{:.1f}", exact.nines)});
    availability.push_back({name, readable, fmt::format("{:.1f}", readable)});
    space.push_back({name, code.overhead(), fmt::format("{:.2f}x", code.overhead())});
  }
  return HtmlPage("Durability and availability of codes and copies",
                  BarSvg("Durability of a block in a year, nines", durability) +
                      BarSvg("Availability of a block, nines", availability) +
                      BarSvg("Bytes stored for each byte", space) +
                      ReliabilityTable(codes).ToHtml());
}

std::string ReliabilityJson(const std::vector<CodeOutlook>& codes) {
  nlohmann::ordered_json json = {{"codes", nlohmann::ordered_json::array()}};
  for (const auto& [code, exact, played] : codes) {
    json["codes"].push_back({{"code", CodeName(code)},
                             {"data_shards", code.data_shards},
                             {"parity_shards", code.parity_shards},
                             {"overhead", code.overhead()},
                             {"years_to_loss", exact.years_to_loss},
                             {"loss_per_year", exact.loss_per_year},
                             {"nines", exact.nines},
                             {"unavailable_share", exact.unavailable_share},
                             {"monte_carlo",
                              {{"cycles", played.cycles},
                               {"years_to_loss", played.years_to_loss},
                               {"relative_error", played.relative_error},
                               {"unavailable_share", played.unavailable_share},
                               {"unavailable_error", played.unavailable_error}}}});
  }
  return json.dump(2) + "\n";
}

}  // namespace cairn::tools
