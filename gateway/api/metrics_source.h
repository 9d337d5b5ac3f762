// How other components put their numbers on the gateway's /metrics, without knowing the gateway.
//
// The program that builds both (a main, or the embedded shape) writes the adapter.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace cairn::gateway {

struct MetricSample {
  std::vector<std::pair<std::string, std::string>> labels{};
  double value = 0;
};

struct MetricFamily {
  enum class Kind { kCounter, kGauge };

  std::string name{};  // [a-z_]+, begins with "cairn_" and the component; counters end in "_total".
  std::string help{};
  Kind kind = Kind::kGauge;
  std::vector<MetricSample> samples{};
};

class MetricsSource {
 public:
  virtual ~MetricsSource() = default;

  // Called on the gateway's thread for each scrape: must not block. No family twice.
  virtual std::vector<MetricFamily> CollectMetrics() = 0;
};

}  // namespace cairn::gateway
