// The scenario's loads, once for each TTL, with what the trace keeps for it.
#include "tools/planner/trace_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tools/planner/loads.h"
#include "tools/planner/quantity.h"
#include "tools/planner/trace_tables.h"

namespace cairn::tools {
namespace {

std::string Percent(double share) { return fmt::format("{:.2f} %", share * 100); }
std::string Tokens(double tokens) { return FormatQuantity(tokens, Unit::kTokens); }
std::string Bytes(double bytes) { return FormatQuantity(bytes, Unit::kBytes); }
std::string Count(double count) { return FormatQuantity(count, Unit::kCount); }
std::string Time(int64_t ms) {
  return FormatQuantity(static_cast<double>(ms) / 1e3, Unit::kSeconds);
}

TtlChoice ChoiceOf(Scenario scenario, const TtlRow& row, int64_t span_ms) {
  scenario.hit_rate = row.refreshed;
  scenario.agent_ttl = scenario.chat_ttl = static_cast<double>(row.ttl_ms) / 1e3;
  const Loads traffic(scenario);
  TtlChoice choice{.ttl_ms = row.ttl_ms, .hit_rate = row.refreshed, .fixed = row.fixed};
  choice.tokens = row.resident_tokens_per_rate * traffic.requests;
  // What the trace keeps, in place of what is written times the TTL.
  scenario.logical_bytes_per_gpu =
      std::max(1.0, choice.tokens * traffic.bytes_per_token) / traffic.gpus;
  const Loads loads(scenario);
  choice.raw_bytes = loads.raw_bytes;
  choice.servers = loads.servers;
  choice.gpus = loads.gpus;
  choice.gpus_saved = loads.requests * loads.hit_tokens / scenario.prefill_rate;
  choice.beyond_span = row.ttl_ms > span_ms;
  return choice;
}

Table TtlTable(const TracePlan& plan) {
  Table table({"TTL", ">hit rate", ">fixed", ">tokens kept", ">SSD bytes", ">servers", ">GPUs",
               ">GPUs saved", ""});
  for (const TtlChoice& choice : plan.by_ttl) {
    table.Add({Time(choice.ttl_ms), Percent(choice.hit_rate), Percent(choice.fixed),
               Tokens(choice.tokens), Bytes(choice.raw_bytes), Count(choice.servers),
               Count(choice.gpus), Count(choice.gpus_saved),
               choice.beyond_span ? "longer than the trace" : ""});
  }
  return table;
}

Table CapacityTable(const TracePlan& plan) {
  Table table({">In the trace, tokens", ">at the scenario's rate", ">SSD bytes", ">LRU hit rate"});
  for (const CapacityChoice& choice : plan.by_capacity) {
    table.Add({Tokens(static_cast<double>(choice.trace_tokens)), Tokens(choice.tokens),
               Bytes(choice.raw_bytes), Percent(choice.hit_rate)});
  }
  return table;
}

std::string Summary(const TracePlan& plan) {
  const TraceReport& report = plan.report;
  return fmt::format(
      "{} requests in {}, {} a second; the scenario has {} a second. A cache that forgets "
      "nothing hits {} of their prompts, and {} with answers written back.",
      WithCommas(static_cast<double>(report.requests), 0), Time(report.span_ms),
      Count(plan.trace_rate), Count(plan.rate), Percent(report.ideal),
      Percent(report.ideal_with_output));
}

LineChart SpaceChart(const TracePlan& plan) {
  LineChart chart{.title = "Hit rate by SSD bytes",
                  .x_title = "SSDs to buy",
                  .y_title = "prompt tokens hit",
                  .x_ticks = {},
                  .series = {{"by TTL", {}}, {"LRU", {}}}};
  for (const TtlChoice& choice : plan.by_ttl) {
    chart.series[0].points.emplace_back(choice.raw_bytes, choice.hit_rate);
  }
  for (const CapacityChoice& choice : plan.by_capacity) {
    chart.x_ticks.emplace_back(choice.raw_bytes, Bytes(choice.raw_bytes));
    chart.series[1].points.emplace_back(choice.raw_bytes, choice.hit_rate);
  }
  return chart;
}

}  // namespace

TracePlan PlanTrace(const Scenario& scenario, TraceReport report) {
  TracePlan plan;
  const double seconds = std::max(1.0, static_cast<double>(report.span_ms) / 1e3);
  plan.trace_rate = static_cast<double>(report.requests) / seconds;
  const Loads loads(scenario);
  plan.rate = loads.requests;
  for (const TtlRow& row : report.by_ttl) {
    plan.by_ttl.push_back(ChoiceOf(scenario, row, report.span_ms));
  }
  for (const CapacityRow& row : report.by_capacity) {
    CapacityChoice choice{.trace_tokens = row.tokens, .hit_rate = row.lru};
    Scenario hitting = scenario;
    hitting.hit_rate = row.lru;
    choice.tokens =
        static_cast<double>(row.tokens) * Loads(hitting).requests / plan.trace_rate;
    choice.raw_bytes =
        choice.tokens * loads.bytes_per_token * loads.stripe_overhead / scenario.fill;
    plan.by_capacity.push_back(choice);
  }
  plan.report = std::move(report);
  return plan;
}

std::string TracePlanText(const TracePlan& plan) {
  return fmt::format("\nFrom the trace: {}\n\n{}\n{}\n{}", Summary(plan), TtlTable(plan).ToText(),
                     CapacityTable(plan).ToText(), BlockSizeTable(plan.report).ToText());
}

std::string TracePlanHtml(const TracePlan& plan) {
  return "<h2>From the trace</h2>\n<p>" + EscapeHtml(Summary(plan)) + "</p>\n" +
         LineSvg(TtlChart(plan.report)) + LineSvg(SpaceChart(plan)) + TtlTable(plan).ToHtml() +
         CapacityTable(plan).ToHtml() + BlockSizeTable(plan.report).ToHtml();
}

}  // namespace cairn::tools
