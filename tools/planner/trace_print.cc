// A trace's report as text, as JSON and as a page.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/planner/quantity.h"
#include "tools/planner/trace_tables.h"

namespace cairn::tools {
namespace {

std::string Percent(double share) { return fmt::format("{:.2f} %", share * 100); }
std::string Tokens(double tokens) { return FormatQuantity(tokens, Unit::kTokens); }
std::string Time(int64_t ms) {
  return FormatQuantity(static_cast<double>(ms) / 1e3, Unit::kSeconds);
}

Table Totals(const TraceReport& r) {
  Table table({"", ">"});
  const auto requests = static_cast<double>(r.requests);
  table.Add({"Requests", WithCommas(requests, 0)});
  table.Add({"Span", Time(r.span_ms)});
  table.Add({"Mean prompt, tokens", WithCommas(static_cast<double>(r.input_tokens) / requests, 0)});
  table.Add(
      {"Mean answer, tokens", WithCommas(static_cast<double>(r.output_tokens) / requests, 0)});
  table.Add({"Distinct tokens", Tokens(static_cast<double>(r.unique_tokens))});
  table.Add({"Requests without any hit",
             Percent(static_cast<double>(r.requests_without_hit) / requests)});
  table.Add({"Hit rate of a cache that forgets nothing", Percent(r.ideal)});
  table.Add({"  with answers written back", Percent(r.ideal_with_output)});
  table.Add({"  mean over requests", Percent(r.mean_request_rate)});
  return table;
}

Table ByTtl(const TraceReport& r, double bytes_per_token) {
  Table table({"TTL", ">refreshed by hits", ">fixed", ">tokens kept per request/s", ">bytes"});
  for (const TtlRow& row : r.by_ttl) {
    table.Add({Time(row.ttl_ms), Percent(row.refreshed), Percent(row.fixed),
               Tokens(row.resident_tokens_per_rate),
               FormatQuantity(row.resident_tokens_per_rate * bytes_per_token, Unit::kBytes)});
  }
  return table;
}

Table ByCapacity(const TraceReport& r, double bytes_per_token) {
  const bool policies = !r.by_capacity.empty() && r.by_capacity[0].s3_fifo >= 0;
  std::vector<std::string> titles = {">Capacity, tokens", ">bytes", ">LRU"};
  if (policies) titles.insert(titles.end(), {">S3-FIFO", ">the store"});
  Table table(std::move(titles));
  for (const CapacityRow& row : r.by_capacity) {
    const auto tokens = static_cast<double>(row.tokens);
    std::vector<std::string> cells = {
        Tokens(tokens), FormatQuantity(tokens * bytes_per_token, Unit::kBytes), Percent(row.lru)};
    if (policies) cells.insert(cells.end(), {Percent(row.s3_fifo), Percent(row.store)});
    table.Add(std::move(cells));
  }
  return table;
}

LineChart CapacityChart(const TraceReport& r) {
  LineChart chart{.title = "Hit rate by capacity",
                  .x_title = "capacity, tokens",
                  .y_title = "prompt tokens hit",
                  .x_ticks = {},
                  .series = {{"LRU", {}}}};
  const bool policies = !r.by_capacity.empty() && r.by_capacity[0].s3_fifo >= 0;
  if (policies) chart.series.insert(chart.series.end(), {{"S3-FIFO", {}}, {"the store", {}}});
  for (const CapacityRow& row : r.by_capacity) {
    const auto x = static_cast<double>(row.tokens);
    chart.x_ticks.emplace_back(x, Tokens(x));
    chart.series[0].points.emplace_back(x, row.lru);
    if (!policies) continue;
    chart.series[1].points.emplace_back(x, row.s3_fifo);
    chart.series[2].points.emplace_back(x, row.store);
  }
  return chart;
}

}  // namespace

std::string IssuesText(const TraceIssues& issues) {
  std::string text;
  if (issues.lines_skipped > 0) {
    text += fmt::format("{} broken lines were skipped (--strict refuses them)\n",
                        issues.lines_skipped);
  }
  if (issues.lines_retimed > 0) {
    text += fmt::format(
        "{} lines without a time, or with one that runs back, were taken as late as the line "
        "before (--strict refuses them)\n",
        issues.lines_retimed);
  }
  for (const std::string& issue : issues.first) text += "  " + issue + "\n";
  return text;
}

Table BlockSizeTable(const TraceReport& r) {
  Table table({">Block, tokens", ">hit rate"});
  for (const BlockRow& row : r.by_block) {
    table.Add({WithCommas(static_cast<double>(row.tokens), 0), Percent(row.ideal)});
  }
  return table;
}

LineChart TtlChart(const TraceReport& r) {
  LineChart chart{.title = "Hit rate by time to live",
                  .x_title = "time to live",
                  .y_title = "prompt tokens hit",
                  .x_ticks = {},
                  .series = {{"refreshed by hits", {}}, {"fixed since written", {}}}};
  for (const TtlRow& row : r.by_ttl) {
    const auto x = static_cast<double>(row.ttl_ms);
    chart.x_ticks.emplace_back(x, Time(row.ttl_ms));
    chart.series[0].points.emplace_back(x, row.refreshed);
    chart.series[1].points.emplace_back(x, row.fixed);
  }
  return chart;
}

std::string TraceText(const TraceReport& r, double bytes_per_token) {
  return Totals(r).ToText() + "\n" + ByTtl(r, bytes_per_token).ToText() + "\n" +
         ByCapacity(r, bytes_per_token).ToText() + "\n" + BlockSizeTable(r).ToText() +
         IssuesText(r.issues);
}

std::string TraceJson(const TraceReport& r) {
  nlohmann::ordered_json json = {{"block_tokens", r.block_tokens},
                                 {"requests", r.requests},
                                 {"requests_without_hit", r.requests_without_hit},
                                 {"input_tokens", r.input_tokens},
                                 {"output_tokens", r.output_tokens},
                                 {"unique_tokens", r.unique_tokens},
                                 {"span_s", static_cast<double>(r.span_ms) / 1e3},
                                 {"ideal", r.ideal},
                                 {"ideal_with_output", r.ideal_with_output},
                                 {"mean_request_rate", r.mean_request_rate},
                                 {"lines_skipped", r.issues.lines_skipped},
                                 {"lines_retimed", r.issues.lines_retimed},
                                 {"ttl", nlohmann::ordered_json::array()},
                                 {"capacity", nlohmann::ordered_json::array()},
                                 {"block", nlohmann::ordered_json::array()}};
  for (const TtlRow& row : r.by_ttl) {
    json["ttl"].push_back({{"ttl_s", static_cast<double>(row.ttl_ms) / 1e3},
                           {"refreshed", row.refreshed},
                           {"fixed", row.fixed},
                           {"resident_tokens_per_request_per_s", row.resident_tokens_per_rate}});
  }
  for (const CapacityRow& row : r.by_capacity) {
    nlohmann::ordered_json entry = {{"tokens", row.tokens}, {"lru", row.lru}};
    if (row.s3_fifo >= 0) {
      entry["s3_fifo"] = row.s3_fifo;
      entry["store"] = row.store;
    }
    json["capacity"].push_back(std::move(entry));
  }
  for (const BlockRow& row : r.by_block) {
    json["block"].push_back({{"tokens", row.tokens}, {"ideal", row.ideal}});
  }
  return json.dump(2) + "\n";
}

std::string TraceHtml(const TraceReport& r, const std::string& title, double bytes_per_token) {
  std::string body = fmt::format(
      "<p>A cache that forgets nothing would have held <b>{}</b> of all prompt tokens.</p>\n",
      Percent(r.ideal));
  body += LineSvg(TtlChart(r)) + LineSvg(CapacityChart(r));
  body += "<h2>Totals</h2>\n" + Totals(r).ToHtml();
  body += "<h2>By time to live</h2>\n" + ByTtl(r, bytes_per_token).ToHtml();
  body += "<h2>By capacity</h2>\n" + ByCapacity(r, bytes_per_token).ToHtml();
  body += "<h2>By block size</h2>\n" + BlockSizeTable(r).ToHtml();
  if (r.issues.any()) body += "<pre>" + EscapeHtml(IssuesText(r.issues)) + "</pre>\n";
  return HtmlPage(title, body);
}

}  // namespace cairn::tools
