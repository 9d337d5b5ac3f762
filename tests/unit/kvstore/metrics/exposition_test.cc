// The text that Prometheus reads: names, labels, values. That it parses is tested on the daemon.
#include "kvstore/metrics/exposition.h"

#include <gmock/gmock.h>

#include <set>
#include <sstream>

namespace cairn::kv {
namespace {

using testing::HasSubstr;
using testing::Not;

MetricsSnapshot Full() {
  MetricsSnapshot snapshot;
  snapshot.store.lookup_blocks = 100;
  snapshot.store.lookup_hits = 90;
  snapshot.store.get_hits = 80;
  snapshot.store.misses = {7, 1, 2, 3, 4};
  snapshot.store.bytes_appended = 150;
  snapshot.store.bytes_moved = 50;
  snapshot.store.capacity_bytes = 1000;
  TargetInfo target;
  target.place = 3;
  target.state = TargetInfo::State::kLost;
  target.corrupt_reads = 5;
  snapshot.targets = {target};
  SpaceInfo space;
  space.options.name = "a\"b\\c\nd";
  space.stored_bytes = 17;
  snapshot.spaces = {space};
  snapshot.scrub = MaintenanceStatus{.running = true, .shards_damaged = 2};
  snapshot.repair = MaintenanceStatus{};
  snapshot.server = ServerStats{.sessions = 4, .requests = 9};
  snapshot.calls.emplace();
  snapshot.calls->get_late_blocks = 6;
  snapshot.calls->verbs[static_cast<size_t>(StoreVerb::kGet)].latency.Add(Micros(3));
  snapshot.calls->verbs[static_cast<size_t>(StoreVerb::kGet)].latency.Add(Seconds(100));
  snapshot.endurance = MetricsSnapshot::Endurance{2500, 1.5};
  snapshot.process = MetricsSnapshot::Process{"9.9", "epoll", 12};
  return snapshot;
}

TEST(MetricsText, HasTheFunnelAndTheReasons) {
  const std::string text = MetricsText(Full());
  for (const char* line :
       {"cairn_funnel_blocks_total{stage=\"asked\"} 100\n",
        "cairn_funnel_blocks_total{stage=\"exists\"} 90\n",
        "cairn_funnel_blocks_total{stage=\"fetched_in_time\"} 80\n",
        "cairn_funnel_blocks_total{stage=\"late\"} 6\n",
        "cairn_store_misses_total{reason=\"absent\"} 1\n",
        "cairn_store_misses_total{reason=\"unavailable\"} 4\n",
        "# TYPE cairn_store_misses_total counter\n",
        "cairn_store_write_amplification 1.5\n",
        "cairn_store_capacity_bytes 1000\n",
        "# TYPE cairn_store_capacity_bytes gauge\n",
        "cairn_target_up{target=\"3\"} 0\n",
        "cairn_target_corrupt_reads_total{target=\"3\"} 5\n",
        "cairn_namespace_stored_bytes{namespace=\"a\\\"b\\\\c\\nd\"} 17\n",
        "cairn_scrub_running 1\n",
        "cairn_repair_running 0\n",
        "cairn_server_sessions 4\n",
        "cairn_server_requests_total 9\n",
        "cairn_endurance_drive_writes_per_day 2.5\n",
        "cairn_endurance_rated_drive_writes_per_day 1.5\n",
        "cairn_build_info{version=\"9.9\",poller=\"epoll\"} 1\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, Not(HasSubstr("reason=\"none\"")));
}

TEST(MetricsText, HistogramsAreCumulative) {
  const std::string text = MetricsText(Full());
  EXPECT_THAT(text, HasSubstr("cairn_call_seconds_bucket{verb=\"get\",le=\"2e-06\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("cairn_call_seconds_bucket{verb=\"get\",le=\"4e-06\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("cairn_call_seconds_bucket{verb=\"get\",le=\"33.554432\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("cairn_call_seconds_bucket{verb=\"get\",le=\"+Inf\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("cairn_call_seconds_count{verb=\"get\"} 2\n"));
}

TEST(MetricsText, NoFamilyIsThereTwice) {
  std::istringstream lines(MetricsText(Full()));
  std::set<std::string> families;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# TYPE ")) {
      EXPECT_TRUE(families.insert(line.substr(7, line.find(' ', 7) - 7)).second) << line;
    }
  }
  EXPECT_GT(families.size(), 60u);
}

TEST(MetricsText, WhatIsNotKnownIsLeftOut) {
  const std::string text = MetricsText({});
  EXPECT_THAT(text, HasSubstr("cairn_store_write_amplification 1\n"));
  for (const char* absent : {"cairn_server_", "cairn_scrub_", "cairn_target_", "cairn_call_"}) {
    EXPECT_THAT(text, Not(HasSubstr(absent)));
  }
}

TEST(MetricsText, WhenCertificatesEnd) {
  MetricsSnapshot snapshot;
  EXPECT_THAT(MetricsText(snapshot), Not(HasSubstr("cairn_tls_")));
  snapshot.certificate_ends = {{"clients", {1'800'000'000'500}}, {"nodes", {1'900'000'000'000}}};
  const std::string text = MetricsText(snapshot);
  EXPECT_THAT(text, HasSubstr("cairn_tls_certificate_end_seconds{use=\"clients\"} 1800000000.5\n"));
  EXPECT_THAT(text, HasSubstr("cairn_tls_certificate_end_seconds{use=\"nodes\"} 1900000000\n"));
}

TEST(MetricsText, TheTransportBetweenNodesAndItsDevices) {
  MetricsSnapshot snapshot;
  snapshot.transport.emplace();
  snapshot.transport->network.connections = 6;
  snapshot.transport->network.calls_late = 3;
  std::string text = MetricsText(snapshot);
  EXPECT_THAT(text, HasSubstr("cairn_transport_connections 6\n"));
  EXPECT_THAT(text, HasSubstr("cairn_transport_calls_late_total 3\n"));
  EXPECT_THAT(text, Not(HasSubstr("cairn_rdma_")));
  snapshot.transport->devices = RdmaDeviceStats{.writes = 9, .cached_bytes = 4096};
  text = MetricsText(snapshot);
  EXPECT_THAT(text, HasSubstr("cairn_rdma_writes_total 9\n"));
  EXPECT_THAT(text, HasSubstr("cairn_rdma_cached_bytes 4096\n"));
}

TEST(MetricsText, NamespacesAreBounded) {
  MetricsSnapshot snapshot;
  for (int i = 0; i < 1500; ++i) {
    SpaceInfo space;
    space.options.name = std::to_string(i);
    snapshot.spaces.push_back(space);
  }
  const std::string text = MetricsText(snapshot);
  EXPECT_THAT(text, HasSubstr("cairn_namespace_stripes{namespace=\"999\"}"));
  EXPECT_THAT(text, Not(HasSubstr("cairn_namespace_stripes{namespace=\"1000\"}")));
}

}  // namespace
}  // namespace cairn::kv
