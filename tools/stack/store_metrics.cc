// Names the store's counters for Prometheus.
#include "tools/stack/store_metrics.h"

#include <chrono>
#include <string>
#include <utility>

namespace cairn::tools {
namespace {

using gateway::MetricFamily;

MetricFamily Counter(std::string name, std::string help, uint64_t value) {
  return {.name = std::move(name),
          .help = std::move(help),
          .kind = MetricFamily::Kind::kCounter,
          .samples = {{.labels = {}, .value = static_cast<double>(value)}}};
}

MetricFamily Gauge(std::string name, std::string help, uint64_t value) {
  MetricFamily family = Counter(std::move(name), std::move(help), value);
  family.kind = MetricFamily::Kind::kGauge;
  return family;
}

MetricFamily Misses(const kv::StoreStats& stats) {
  static constexpr std::array<const char*, kv::kMissReasons> kNames = {"none", "absent", "expired",
                                                                       "evicted", "unavailable"};
  MetricFamily family{.name = "cairn_store_lookup_misses_total",
                      .help = "Lookups that ended in a miss, by reason.",
                      .kind = MetricFamily::Kind::kCounter,
                      .samples = {}};
  for (size_t i = 1; i < kNames.size(); ++i) {
    family.samples.push_back({.labels = {{"reason", kNames[i]}},
                              .value = static_cast<double>(stats.misses[i])});
  }
  return family;
}

}  // namespace

StoreMetrics::StoreMetrics(kv::EmbeddedNode& node) : node_(node), thread_([this] { Run(); }) {}

StoreMetrics::~StoreMetrics() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_changed_.notify_all();
  thread_.join();
}

void StoreMetrics::Run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    const kv::StoreStats now = node_.stats();
    lock.lock();
    last_ = now;
    stop_changed_.wait_for(lock, std::chrono::seconds(1), [this] { return stopping_; });
  }
}

std::vector<MetricFamily> StoreMetrics::CollectMetrics() {
  kv::StoreStats stats;
  {
    const std::lock_guard lock(mutex_);
    stats = last_;
  }
  return {
      Counter("cairn_store_lookup_blocks_total", "Blocks that lookups asked for.",
              stats.lookup_blocks),
      Counter("cairn_store_lookup_hits_total", "Blocks that lookups found restorable.",
              stats.lookup_hits),
      Misses(stats),
      Counter("cairn_store_get_blocks_total", "Blocks that gets asked for.", stats.gets),
      Counter("cairn_store_get_hits_total", "Blocks that gets returned.", stats.get_hits),
      Counter("cairn_store_get_bytes_total", "Bytes that gets returned.", stats.bytes_got),
      Counter("cairn_store_degraded_reads_total", "Blocks rebuilt from other shards.",
              stats.degraded_reads),
      Counter("cairn_store_corrupt_shards_total", "Shards that failed a checksum when read.",
              stats.corrupt_shards),
      Counter("cairn_store_missing_shards_total", "Shards that a target did not have or give.",
              stats.missing_shards),
      Counter("cairn_store_put_blocks_total", "Blocks asked to be stored.", stats.puts),
      Counter("cairn_store_put_stored_total", "Blocks stored.", stats.puts_stored),
      Counter("cairn_store_put_failed_total", "Blocks that could not be stored.",
              stats.puts_failed),
      Counter("cairn_store_put_bytes_total", "Bytes of blocks stored.", stats.bytes_put),
      Counter("cairn_store_evicted_stripes_total", "Stripes evicted to make room.",
              stats.evicted_stripes),
      Counter("cairn_store_expired_stripes_total", "Stripes whose time had passed.",
              stats.expired_stripes),
      Counter("cairn_store_appended_bytes_total", "Bytes written to targets.",
              stats.bytes_appended),
      Counter("cairn_store_moved_bytes_total", "Of these, rewritten by reclaim.",
              stats.bytes_moved),
      Gauge("cairn_store_capacity_bytes", "Raw size of all targets.", stats.capacity_bytes),
      Gauge("cairn_store_free_bytes", "Raw bytes free.", stats.free_bytes),
      Gauge("cairn_store_live_bytes", "Raw bytes of live shards.", stats.live_bytes),
      Gauge("cairn_store_memory_bytes", "Memory of tables, caches and pools.", stats.memory_bytes),
  };
}

}  // namespace cairn::tools
