// The flags of `cairn plan`.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <optional>
#include <set>

#include "kvstore/layout/known_models.h"
#include "tools/planner/command_support.h"
#include "tools/planner/model_print.h"
#include "tools/planner/plan_print.h"
#include "tools/planner/scenario_io.h"
#include "tools/planner/table.h"
#include "tools/planner/trace_report.h"

namespace cairn::tools {
namespace {

struct PlanFlags {
  std::string scenario;
  std::vector<std::string> settings;
  std::string trace;
  std::string trace_format = "auto";
  bool strict = false;
  bool json = false;
  bool fields = false;
  std::string html;
};

kv::Status PrintFields(CommandResult& result) {
  Table table({"Field", ">default", "meaning"});
  const Scenario defaults;
  for (const ScenarioField& field : ScenarioFields()) {
    const double value = defaults.*field.member;
    table.Add({std::string(field.key), value == 0 ? "-" : FormatQuantity(value, field.unit),
               std::string(field.help)});
  }
  result.output = table.ToText();
  return kv::Status();
}

struct FromTrace {
  TraceReport report;
  std::vector<std::string> settings;  // Of traffic: what the trace says.
};

// Lengths and hit rate as the trace has them, at the scenario's two TTLs.
kv::Result<FromTrace> ReadTrace(const PlanFlags& flags, CommandResult& result) {
  TraceReportOptions options;
  KV_ASSIGN_OR_RETURN(options.trace.format, ParseTraceFormat(flags.trace_format));
  options.trace.broken_lines = flags.strict ? BrokenLines::kRefuse : BrokenLines::kSkip;
  // The file and flags may be incomplete until the trace has its say: look at the TTLs only.
  std::vector<std::string> probe = flags.settings;
  for (const char* setting : {"traffic.input_tokens=1000", "traffic.hit_rate=0.5"})
    probe.push_back(setting);
  KV_ASSIGN_OR_RETURN(const Scenario scenario, LoadScenario(flags.scenario, probe));
  const int64_t agent_ms = std::llround(scenario.agent_ttl * 1e3);
  const int64_t chat_ms = std::llround(scenario.chat_ttl * 1e3);
  std::set<int64_t> ttls = {agent_ms, chat_ms};
  for (const int64_t ttl_ms : UsualTtls()) ttls.insert(ttl_ms);
  options.ttls_ms.assign(ttls.begin(), ttls.end());
  FromTrace from;
  KV_ASSIGN_OR_RETURN(from.report, ReportTrace(flags.trace, options));
  const TraceReport& report = from.report;
  const auto at = [&](int64_t ttl_ms) {
    for (const TtlRow& row : report.by_ttl) {
      if (row.ttl_ms == ttl_ms) return row.refreshed;
    }
    return 0.0;
  };
  const auto requests = static_cast<double>(report.requests);
  const double hit_rate =
      at(agent_ms) * (1 - scenario.chat_share) + at(chat_ms) * scenario.chat_share;
  result.errors += IssuesText(report.issues);
  result.output +=
      fmt::format("From {}: {} requests, hit rate {:.2f} % at the scenario's TTLs{}\n", flags.trace,
                  WithCommas(requests, 0), hit_rate * 100,
                  report.span_ms < agent_ms
                      ? "; it is shorter than the TTLs and cannot show what they are worth"
                      : "");
  from.settings = {
      fmt::format("traffic.hit_rate={}", hit_rate),
      fmt::format("traffic.input_tokens={}", static_cast<double>(report.input_tokens) / requests),
      fmt::format("traffic.output_tokens={}",
                  static_cast<double>(report.output_tokens) / requests)};
  return from;
}

kv::Status RunScenario(const PlanFlags& flags, CommandResult& result) {
  if (flags.fields) return PrintFields(result);
  std::optional<FromTrace> from;
  std::vector<std::string> settings;
  if (!flags.trace.empty()) {
    KV_ASSIGN_OR_RETURN(from, ReadTrace(flags, result));
    settings = from->settings;
  }
  settings.insert(settings.end(), flags.settings.begin(), flags.settings.end());
  KV_ASSIGN_OR_RETURN(const Scenario scenario, LoadScenario(flags.scenario, settings));
  KV_ASSIGN_OR_RETURN(const Plan plan, MakePlan(scenario));
  std::optional<TracePlan> choices;
  if (from) choices = PlanTrace(scenario, std::move(from->report));
  const TracePlan* trace = choices ? &*choices : nullptr;
  if (flags.json) {
    result.output = PlanJson(plan, trace);
  } else {
    result.output += PlanText(plan, trace);
  }
  if (!flags.html.empty()) KV_RETURN_IF_ERROR(WriteTextFile(flags.html, PlanHtml(plan, trace)));
  if (!plan.ClaimsHold()) result.exit_code = 1;
  return kv::Status();
}

struct ModelFlags {
  std::string config;
  std::string dtype;
  ModelList list;
  bool json = false;
  std::string html;
};

kv::Status RunModels(ModelFlags flags, CommandResult& result) {
  std::vector<ModelRow>& models = flags.list.models;
  if (flags.config.empty() && !flags.dtype.empty()) {
    return {kv::Code::kInvalid, "--dtype is of the model in --config: known models have their own"};
  }
  if (flags.config.empty()) {
    for (const kv::KnownModel& model : kv::KnownModels()) {
      models.push_back({model.layout, std::string(model.source)});
    }
  } else {
    KV_ASSIGN_OR_RETURN(kv::KvLayout layout, LoadModelConfig(flags.config, flags.dtype));
    models.push_back({std::move(layout), flags.config});
  }
  result.output = flags.json ? ModelsJson(flags.list) : ModelsText(flags.list);
  return flags.html.empty() ? kv::Status() : WriteTextFile(flags.html, ModelsHtml(flags.list));
}

constexpr uint64_t kCyclesMax = 100'000'000;

struct ReliabilityFlags {
  std::vector<std::string> codes = {"10+2", "4+2", "8+3", "2x", "3x"};
  FailureRates rates;
  std::string rebuild = "1 h";
  std::string outage = "1 h";
  uint64_t cycles = 200'000;
  uint64_t seed = 1;
  bool json = false;
  std::string html;
};

kv::Status RunReliability(ReliabilityFlags flags, CommandResult& result) {
  std::vector<CodeShape> codes;
  for (const std::string& text : flags.codes) {
    KV_ASSIGN_OR_RETURN(const CodeShape code, ParseCode(text));
    codes.push_back(code);
  }
  KV_ASSIGN_OR_RETURN(flags.rates.rebuild_hours, ParseQuantity(flags.rebuild, Unit::kSeconds));
  KV_ASSIGN_OR_RETURN(flags.rates.outage_hours, ParseQuantity(flags.outage, Unit::kSeconds));
  flags.rates.rebuild_hours /= 3'600;
  flags.rates.outage_hours /= 3'600;
  const FailureRates& rates = flags.rates;
  for (const double rate : {rates.failures_per_year, rates.rebuild_hours, rates.outages_per_year,
                            rates.outage_hours, rates.stripe_sets}) {
    if (!std::isfinite(rate)) return {kv::Code::kInvalid, "a rate or time is no number"};
  }
  if (!(rates.failures_per_year > 0) || !(rates.rebuild_hours > 0) ||
      !(rates.outages_per_year >= 0) || !(rates.outage_hours >= 0) || !(rates.stripe_sets > 0) ||
      flags.cycles == 0 || flags.cycles > kCyclesMax) {
    return {kv::Code::kInvalid,
            "failure rates, rebuild time and stripe sets are above zero, outages not below it, "
            "cycles 1 to 100 M"};
  }
  std::vector<CodeOutlook> outlooks;
  for (const CodeShape& code : codes) {
    outlooks.push_back(
        {code, Solve(code, rates), Simulate(code, rates, flags.cycles, flags.seed)});
  }
  result.output = flags.json ? ReliabilityJson(outlooks) : ReliabilityText(outlooks);
  return flags.html.empty() ? kv::Status() : WriteTextFile(flags.html, ReliabilityHtml(outlooks));
}

}  // namespace

CommandResult PlanCommand(const std::vector<std::string>& arguments, const AppVisitor& visit) {
  CLI::App app("How many SSDs, for how long, at what price.", "cairn plan");
  PlanFlags plan;
  app.add_option("scenario", plan.scenario, "A .toml or .json file; none = only --set");
  app.add_option("--set", plan.settings, "key=value, over the scenario's (may be repeated)")
      ->take_all()
      ->allow_extra_args(false);
  app.add_option("--trace", plan.trace,
                 "Take prompt lengths and the hit rate from this trace, and compare TTLs and "
                 "capacities");
  app.add_option("--format", plan.trace_format,
                 "Of the trace: auto, mooncake, bailian, sessions, text");
  app.add_flag("--strict", plan.strict, "Refuse a trace with broken lines");
  app.add_flag("--json", plan.json, "Print all figures, by id");
  app.add_option("--html", plan.html, "Also write a page with charts");
  app.add_flag("--fields", plan.fields, "List the fields of a scenario");

  ModelFlags model;
  CLI::App* models = app.add_subcommand("models", "KV bytes per token of known models");
  models->add_option("--config", model.config, "A Hugging Face config.json instead");
  models->add_option("--dtype", model.dtype, "Of the KV: bf16, fp8, ...");
  models->add_option("--block-tokens", model.list.block_tokens, "Tokens per block")
      ->check(CLI::Range(1, 1 << 20));
  models->add_flag("--json", model.json, "Print the table as JSON");
  models->add_option("--html", model.html, "Also write a page with charts");

  ReliabilityFlags reliability;
  CLI::App* failures =
      app.add_subcommand("failures", "Durability and availability of codes and copies");
  failures->add_option("codes", reliability.codes, "10+2, 8+3, 3x, ...");
  failures->add_option("--failures-per-year", reliability.rates.failures_per_year,
                       "Of a shard's holder");
  failures->add_option("--rebuild", reliability.rebuild, "Mean time to rebuild, such as '2 h'");
  failures->add_option("--outages-per-year", reliability.rates.outages_per_year,
                       "With the data intact");
  failures->add_option("--outage", reliability.outage, "How long these last");
  failures->add_option("--stripe-sets", reliability.rates.stripe_sets,
                       "Independent groups of holders");
  failures->add_option("--cycles", reliability.cycles, "Of the Monte Carlo");
  failures->add_option("--seed", reliability.seed, "Of the Monte Carlo");
  failures->add_flag("--json", reliability.json, "Print the table as JSON");
  failures->add_option("--html", reliability.html, "Also write a page with charts");
  app.require_subcommand(0, 1);

  return RunParsed(app, arguments, visit, [&](CommandResult& result) {
    if (*models) return RunModels(model, result);
    if (*failures) return RunReliability(reliability, result);
    return RunScenario(plan, result);
  });
}

}  // namespace cairn::tools
