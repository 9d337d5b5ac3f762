// What a trace says of a scenario: hit rate, space, servers and GPUs for each TTL and capacity.
#pragma once

#include <string>
#include <vector>

#include "tools/planner/scenario.h"
#include "tools/planner/trace_report.h"

namespace cairn::tools {

// All of the traffic kept for one TTL, counted again at every hit.
struct TtlChoice {
  int64_t ttl_ms = 0;
  double hit_rate = 0;
  double fixed = 0;     // The hit rate when hits do not count.
  double tokens = 0;    // Of prompts, kept at the scenario's request rate.
  double raw_bytes = 0;  // SSDs to buy for them.
  double servers = 0;
  double gpus = 0;
  double gpus_saved = 0;   // Of prefill.
  bool beyond_span = false;  // The trace is shorter than this TTL: it shows less than it is worth.
};

// An LRU cache of this capacity.
struct CapacityChoice {
  uint64_t trace_tokens = 0;  // At the trace's own request rate.
  double tokens = 0;  // At the scenario's, which hits so often: more sessions, more to keep.
  double raw_bytes = 0;
  double hit_rate = 0;
};

struct TracePlan {
  TraceReport report;
  double trace_rate = 0;  // Requests per second.
  double rate = 0;
  std::vector<TtlChoice> by_ttl;
  std::vector<CapacityChoice> by_capacity;
};

// `scenario` is valid. Each row has its own hit rate, and as many requests as the GPUs then serve
// where the scenario gives their number.
TracePlan PlanTrace(const Scenario& scenario, TraceReport report);

std::string TracePlanText(const TracePlan& plan);
// The charts and tables of a page.
std::string TracePlanHtml(const TracePlan& plan);

}  // namespace cairn::tools
