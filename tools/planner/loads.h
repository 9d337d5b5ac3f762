// The rates that every part of a plan starts from.
#pragma once

#include "tools/planner/plan.h"

namespace cairn::tools {

struct Loads {
  double bytes_per_token = 0;
  double miss_tokens = 0;  // Per request.
  double hit_tokens = 0;
  double requests = 0;  // Per second, the whole cluster.
  double prefill_gpus = 0;
  double decode_gpus = 0;
  double gpus = 0;
  double read_bytes = 0;       // Per second: hits fetched.
  double write_bytes = 0;      // Per second, logical: new blocks.
  double stripe_overhead = 0;  // (k + m) / k.
  double retention = 0;        // Seconds, mean over the written bytes.
  double logical_bytes = 0;    // Kept, before erasure coding.
  double raw_bytes = 0;        // SSDs to buy for that, at the fill given.
  double server_bytes = 0;     // Raw, of one server.
  double servers = 0;          // Whole ones, by the tightest of space, reads and writes.

  explicit Loads(const Scenario& scenario);
};

// --- One group of figures each; private to this folder. ---
FigureGroup TrafficFigures(const Scenario& scenario, const Loads& loads);
FigureGroup BlockFigures(const Scenario& scenario, const Loads& loads);
FigureGroup StoreFigures(const Scenario& scenario, const Loads& loads);
FigureGroup WearFigures(const Scenario& scenario, const Loads& loads);
FigureGroup RebuildFigures(const Scenario& scenario, const Loads& loads);
FigureGroup MemoryFigures(const Scenario& scenario, const Loads& loads);
FigureGroup MoneyFigures(const Scenario& scenario, const Loads& loads);

}  // namespace cairn::tools
