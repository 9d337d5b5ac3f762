// The gateway's own counters, and the text of /metrics.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/engine.h"
#include "gateway/api/metrics_source.h"
#include "kvstore/base/time.h"

namespace cairn::gateway {

// A closed list: a label must not grow with what clients invent.
enum class Route { kChat, kModels, kHealth, kMetrics, kOther };
std::string_view RouteName(Route route);

// Thread-safe.
class Metrics {
 public:
  Metrics();
  ~Metrics();

  void CountRequest(Route route, int status, kv::Nanos took);
  // From the request's arrival to its first token.
  void CountFirstToken(kv::Nanos took, const engine::Usage& usage);
  void CountTokens(const engine::Usage& usage);

  // The exposition format, text version 0.0.4.
  std::string Text(const std::vector<MetricFamily>& others) const;

 private:
  struct Families;
  const std::unique_ptr<Families> families_;
};

// The engine's totals as families.
std::vector<MetricFamily> EngineFamilies(const engine::EngineStats& stats);

}  // namespace cairn::gateway
