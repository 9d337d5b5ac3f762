// The store's counters on the gateway's /metrics, sampled once a second by a thread of their own.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "gateway/api/metrics_source.h"
#include "kvstore/node/embedded/embedded_node.h"

namespace cairn::tools {

// A scrape must not wait for the store's thread, so it gets the last sample.
class StoreMetrics final : public gateway::MetricsSource {
 public:
  // `node` must outlive it.
  explicit StoreMetrics(kv::EmbeddedNode& node);
  ~StoreMetrics() override;

  std::vector<gateway::MetricFamily> CollectMetrics() override;

 private:
  void Run();

  kv::EmbeddedNode& node_;
  std::mutex mutex_;
  std::condition_variable stop_changed_;
  bool stopping_ = false;  // Protected by mutex_.
  kv::StoreStats last_;    // Protected by mutex_.
  std::thread thread_;
};

}  // namespace cairn::tools
