// Counts with prometheus-cpp, and writes its text format.
#include "gateway/api/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

namespace cairn::gateway {
namespace {

using prometheus::Histogram;

// Seconds. From an answer out of memory to a long generation.
const Histogram::BucketBoundaries kSeconds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                           0.5,   1,      2.5,   5,    10,    25,   60,  300};

double InSeconds(kv::Nanos span) { return static_cast<double>(span.value) * 1e-9; }

prometheus::MetricFamily Convert(const MetricFamily& family) {
  const bool counts = family.kind == MetricFamily::Kind::kCounter;
  prometheus::MetricFamily converted;
  converted.name = family.name;
  converted.help = family.help;
  converted.type = counts ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge;
  for (const MetricSample& sample : family.samples) {
    prometheus::ClientMetric metric;
    for (const auto& [name, value] : sample.labels) metric.label.push_back({name, value});
    (counts ? metric.counter.value : metric.gauge.value) = sample.value;
    converted.metric.push_back(std::move(metric));
  }
  return converted;
}

}  // namespace

std::string_view RouteName(Route route) {
  switch (route) {
    case Route::kChat:
      return "/v1/chat/completions";
    case Route::kModels:
      return "/v1/models";
    case Route::kHealth:
      return "/health";
    case Route::kMetrics:
      return "/metrics";
    case Route::kOther:
      return "other";
  }
  return "other";
}

struct Metrics::Families {
  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter>& requests =
      prometheus::BuildCounter()
          .Name("cairn_gateway_requests_total")
          .Help("Requests by route and HTTP status; 499 when the client left before the end.")
          .Register(registry);
  prometheus::Family<Histogram>& seconds =
      prometheus::BuildHistogram()
          .Name("cairn_gateway_request_seconds")
          .Help("From a request's arrival to the end of its answer.")
          .Register(registry);
  prometheus::Family<Histogram>& first_token =
      prometheus::BuildHistogram()
          .Name("cairn_gateway_first_token_seconds")
          .Help(
              "From a request's arrival to its first token; cache=hit when any prompt token "
              "came from the store.")
          .Register(registry);
  prometheus::Family<prometheus::Counter>& tokens =
      prometheus::BuildCounter()
          .Name("cairn_gateway_tokens_total")
          .Help("Tokens of answered requests; cached ones are among those of prompts.")
          .Register(registry);
  Histogram& first_token_hit = first_token.Add({{"cache", "hit"}}, kSeconds);
  Histogram& first_token_miss = first_token.Add({{"cache", "miss"}}, kSeconds);
  prometheus::Counter& prompt = tokens.Add({{"kind", "prompt"}});
  prometheus::Counter& cached = tokens.Add({{"kind", "cached"}});
  prometheus::Counter& completion = tokens.Add({{"kind", "completion"}});
};

Metrics::Metrics() : families_(std::make_unique<Families>()) {}
Metrics::~Metrics() = default;

void Metrics::CountRequest(Route route, int status, kv::Nanos took) {
  const std::string name(RouteName(route));
  families_->requests.Add({{"route", name}, {"status", std::to_string(status)}}).Increment();
  families_->seconds.Add({{"route", name}}, kSeconds).Observe(InSeconds(took));
}

void Metrics::CountFirstToken(kv::Nanos took, const engine::Usage& usage) {
  Histogram& histogram =
      usage.cached_tokens > 0 ? families_->first_token_hit : families_->first_token_miss;
  histogram.Observe(InSeconds(took));
}

void Metrics::CountTokens(const engine::Usage& usage) {
  families_->prompt.Increment(usage.prompt_tokens);
  families_->cached.Increment(usage.cached_tokens);
  families_->completion.Increment(usage.completion_tokens);
}

std::string Metrics::Text(const std::vector<MetricFamily>& others) const {
  std::vector<prometheus::MetricFamily> all = families_->registry.Collect();
  for (const MetricFamily& family : others) all.push_back(Convert(family));
  return prometheus::TextSerializer().Serialize(all);
}

std::vector<MetricFamily> EngineFamilies(const engine::EngineStats& stats) {
  std::vector<MetricFamily> families;
  const auto add = [&](std::string name, std::string help, MetricFamily::Kind kind,
                       uint64_t value) {
    MetricFamily family{.name = "cairn_engine_" + name, .help = std::move(help), .kind = kind};
    family.samples.push_back({.value = static_cast<double>(value)});
    families.push_back(std::move(family));
  };
  const auto counter = MetricFamily::Kind::kCounter;
  const auto gauge = MetricFamily::Kind::kGauge;
  add("requests_started_total", "Generations begun.", counter, stats.requests_started);
  add("requests_finished_total", "Generations ended well.", counter, stats.requests_finished);
  add("requests_cancelled_total", "Generations cancelled.", counter, stats.requests_cancelled);
  add("requests_failed_total", "Generations failed.", counter, stats.requests_failed);
  add("prompt_tokens_total", "Prompt tokens, cached ones included.", counter, stats.prompt_tokens);
  add("cached_tokens_total", "Prompt tokens read from the store.", counter, stats.cached_tokens);
  add("completion_tokens_total", "Tokens generated.", counter, stats.completion_tokens);
  add("requests_running", "Generations running now.", gauge, stats.requests_running);
  add("requests_waiting", "Generations waiting now.", gauge, stats.requests_waiting);
  add("blocks_loaded_total", "KV blocks read from the store.", counter, stats.blocks_loaded);
  add("blocks_saved_total", "KV blocks written to the store.", counter, stats.blocks_saved);
  add("block_loads_failed_total", "KV blocks found but not read, so recomputed.", counter,
      stats.block_loads_failed);
  add("block_saves_failed_total", "KV blocks not written.", counter, stats.block_saves_failed);
  return families;
}

}  // namespace cairn::gateway
