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
      text("store.logical_bytes"), text("retention.days"), text("gpu.count"),
      text("gpu.recompute_saved"), text("wear.life"), text("wear.dwpd"));
}

}  // namespace

std::string PlanText(const Plan& plan) {
  std::string text = fmt::format("{}\n{}\n", plan.name, Headline(plan));
  for (const FigureGroup& group : plan.groups)
    text += fmt::format("\n{}", GroupTable(group).ToText());
  if (HasClaims(plan, true)) text += fmt::format("\n{}", ClaimTable(plan, true).ToText());
  if (HasClaims(plan, false)) {
    text += fmt::format("\n{}{}", ClaimTable(plan, false).ToText(), Reasons(plan));
  }
  return text;
}

std::string PlanJson(const Plan& plan) {
  nlohmann::ordered_json json = {{"name", plan.name}, {"claims_hold", plan.ClaimsHold()}};
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
  return json.dump(2) + "\n";
}

std::string PlanHtml(const Plan& plan) {
  std::string body = "<p><b>" + EscapeHtml(Headline(plan)) + "</b></p>\n";
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

std::string ReliabilityText(const std::vector<CodeShape>& codes, const FailureRates& rates,
                            uint64_t cycles, uint64_t seed) {
  Table table({"Code", ">bytes", ">loses at", ">years to loss", ">Monte Carlo", ">+-",
               ">loss per year", ">nines", ">unreadable"});
  for (const CodeShape& code : codes) {
    const Reliability exact = Solve(code, rates);
    const MonteCarlo played = Simulate(code, rates, cycles, seed);
    table.Add({CodeName(code), fmt::format("{:.2f}x", code.overhead()),
               fmt::format("{} lost", code.parity_shards + 1),
               fmt::format("{:.3g}", exact.years_to_loss),
               fmt::format("{:.3g}", played.years_to_loss),
               fmt::format("{:.1f} %", played.relative_error * 100),
               fmt::format("{:.2g}", exact.loss_per_year), fmt::format("{:.1f}", exact.nines),
               fmt::format("{:.2g}", exact.unavailable_share)});
  }
  return table.ToText();
}

}  // namespace cairn::tools
