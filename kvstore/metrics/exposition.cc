// Families by prometheus-cpp's types; its serializer escapes and formats.
#include "kvstore/metrics/exposition.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <limits>
#include <string_view>
#include <utility>

namespace cairn::kv {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;
using Families = std::vector<MetricFamily>;

constexpr size_t kSpacesShownMax = 1000;

ClientMetric Sample(StatKind kind, double value, Labels labels = {}) {
  ClientMetric metric;
  metric.label = std::move(labels);
  (kind == StatKind::kCounter ? metric.counter.value : metric.gauge.value) = value;
  return metric;
}

// `name` without "_total", which counters get.
MetricFamily Family(std::string name, StatKind kind, std::string_view help) {
  MetricFamily family;
  family.name = std::move(name);
  if (kind == StatKind::kCounter) family.name.append("_total");
  family.help = std::string(help);
  family.type = kind == StatKind::kCounter ? MetricType::Counter : MetricType::Gauge;
  return family;
}

void AddOne(Families& all, std::string name, StatKind kind, std::string_view help, double value) {
  all.push_back(Family(std::move(name), kind, help));
  all.back().metric.push_back(Sample(kind, value));
}

void AddStore(Families& all, const StoreStats& stats) {
  constexpr std::string_view kMisses = "misses_";
  MetricFamily misses = Family("cairn_store_misses", StatKind::kCounter,
                               "Lookups that ended in a miss, by reason.");
  VisitStats(stats, [&](std::string_view name, StatKind kind, uint64_t value,
                        std::string_view help) {
    if (name.starts_with(kMisses)) {
      const std::string reason(name.substr(kMisses.size()));
      if (reason == "none") return;
      misses.metric.push_back(Sample(kind, static_cast<double>(value), {{"reason", reason}}));
      return;
    }
    AddOne(all, std::string("cairn_store_").append(name), kind, help, static_cast<double>(value));
  });
  all.push_back(std::move(misses));
  AddOne(all, "cairn_store_write_amplification", StatKind::kGauge,
         "Bytes written for each byte put, moves included.", WriteAmplification(stats));
}

void AddFunnel(Families& all, const MetricsSnapshot& snapshot) {
  MetricFamily funnel =
      Family("cairn_funnel_blocks", StatKind::kCounter,
             "The hit funnel: blocks asked for, that exist, that were fetched in time, or late.");
  const auto add = [&](const char* stage, uint64_t value) {
    funnel.metric.push_back(
        Sample(StatKind::kCounter, static_cast<double>(value), {{"stage", stage}}));
  };
  add("asked", snapshot.store.lookup_blocks);
  add("exists", snapshot.store.lookup_hits);
  add("fetched_in_time", snapshot.store.get_hits);
  if (snapshot.calls) add("late", snapshot.calls->get_late_blocks);
  all.push_back(std::move(funnel));
}

ClientMetric Histogram(const LatencyHistogram& latency, Labels labels) {
  ClientMetric metric;
  metric.label = std::move(labels);
  uint64_t cumulative = 0;
  for (size_t i = 0; i < kLatencyBuckets; ++i) {
    cumulative += latency.buckets[i];
    metric.histogram.bucket.push_back(
        {cumulative, static_cast<double>(LatencyBound(i).value) / 1e9});
  }
  metric.histogram.bucket.push_back(
      {latency.count, std::numeric_limits<double>::infinity()});
  metric.histogram.sample_count = latency.count;
  metric.histogram.sample_sum = static_cast<double>(latency.sum_nanos) / 1e9;
  return metric;
}

void AddCalls(Families& all, const MeteredStats& calls) {
  MetricFamily seconds;
  seconds.name = "cairn_call_seconds";
  seconds.help = "How long calls took in the store, by verb.";
  seconds.type = MetricType::Histogram;
  MetricFamily errors = Family("cairn_call_errors", StatKind::kCounter,
                               "Calls of which a part failed, and not by a miss.");
  for (size_t i = 0; i < kStoreVerbs; ++i) {
    const Labels labels = {{"verb", std::string(VerbName(static_cast<StoreVerb>(i)))}};
    seconds.metric.push_back(Histogram(calls.verbs[i].latency, labels));
    errors.metric.push_back(
        Sample(StatKind::kCounter, static_cast<double>(calls.verbs[i].errors), labels));
  }
  all.push_back(std::move(seconds));
  all.push_back(std::move(errors));
}

// One family for each column, with one sample for each row.
template <typename Row>
struct Column {
  const char* name;
  StatKind kind;
  const char* help;
  double (*value)(const Row&);
};

template <typename Row, size_t kColumns, typename LabelOf>
void AddTable(Families& all, const std::vector<Row>& rows, size_t rows_max,
              const std::array<Column<Row>, kColumns>& columns, const LabelOf& label_of) {
  if (rows.empty()) return;
  for (const Column<Row>& column : columns) {
    MetricFamily family = Family(column.name, column.kind, column.help);
    for (size_t i = 0; i < rows.size() && i < rows_max; ++i) {
      family.metric.push_back(Sample(column.kind, column.value(rows[i]), {label_of(rows[i])}));
    }
    all.push_back(std::move(family));
  }
}

double Number(uint64_t value) { return static_cast<double>(value); }

constexpr StatKind kCounter = StatKind::kCounter;
constexpr StatKind kGauge = StatKind::kGauge;

void AddTargets(Families& all, const std::vector<TargetInfo>& targets) {
  using T = TargetInfo;
  static constexpr std::array<Column<T>, 9> kColumns = {{
      {"cairn_target_up", kGauge, "1: serving; 0: lost, or being repaired.",
       [](const T& t) { return t.state == T::State::kServing ? 1.0 : 0.0; }},
      {"cairn_target_capacity_bytes", kGauge, "Size of the target.",
       [](const T& t) { return Number(t.capacity_bytes); }},
      {"cairn_target_free_bytes", kGauge, "Bytes free on the target.",
       [](const T& t) { return Number(t.free_bytes); }},
      {"cairn_target_live_bytes", kGauge, "Bytes of live shards on the target.",
       [](const T& t) { return Number(t.live_bytes); }},
      {"cairn_target_reads", kCounter, "Shard reads of the target.",
       [](const T& t) { return Number(t.reads); }},
      {"cairn_target_bytes_read", kCounter, "Bytes read from the target.",
       [](const T& t) { return Number(t.bytes_read); }},
      {"cairn_target_bytes_appended", kCounter, "Bytes written to the target.",
       [](const T& t) { return Number(t.bytes_appended); }},
      {"cairn_target_bytes_moved", kCounter, "Of these, rewritten by reclaim.",
       [](const T& t) { return Number(t.bytes_moved); }},
      {"cairn_target_corrupt_reads", kCounter, "Reads of the target that failed a checksum.",
       [](const T& t) { return Number(t.corrupt_reads); }},
  }};
  AddTable(all, targets, targets.size(), kColumns, [](const T& target) {
    return ClientMetric::Label{"target", std::to_string(target.place)};
  });
}

void AddSpaces(Families& all, const std::vector<SpaceInfo>& spaces) {
  using S = SpaceInfo;
  static constexpr std::array<Column<S>, 4> kColumns = {{
      {"cairn_namespace_stored_bytes", kGauge, "Bytes of blocks stored in the namespace.",
       [](const S& s) { return Number(s.stored_bytes); }},
      {"cairn_namespace_kept_bytes", kGauge, "Of these, guaranteed by a keep_until.",
       [](const S& s) { return Number(s.kept_bytes); }},
      {"cairn_namespace_quota_bytes", kGauge, "What the namespace may store; 0: no limit.",
       [](const S& s) { return Number(s.options.quota_bytes); }},
      {"cairn_namespace_stripes", kGauge, "Stripes of the namespace.",
       [](const S& s) { return Number(s.stripes); }},
  }};
  AddTable(all, spaces, kSpacesShownMax, kColumns, [](const S& space) {
    return ClientMetric::Label{"namespace", space.options.name};
  });
}

void AddMaintenance(Families& all, const std::string& prefix, const MaintenanceStatus& status) {
  AddOne(all, prefix + "_running", kGauge, "1 while a pass is running.", status.running ? 1 : 0);
  AddOne(all, prefix + "_pass_done_bytes", kGauge, "Bytes done in this or the last pass.",
         Number(status.bytes_done));
  AddOne(all, prefix + "_pass_left_bytes", kGauge, "Bytes left in this pass, estimated.",
         Number(status.bytes_left));
  AddOne(all, prefix + "_pass_damaged_shards", kGauge, "Shards found damaged in this pass.",
         Number(status.shards_damaged));
  AddOne(all, prefix + "_pass_repaired_shards", kGauge, "Shards written anew in this pass.",
         Number(status.shards_repaired));
  AddOne(all, prefix + "_pass_failed_shards", kGauge, "Shards beyond repair in this pass.",
         Number(status.shards_failed));
  AddOne(all, prefix + "_passes", kCounter, "Passes completed since the start.",
         Number(status.passes));
}

void AddEndurance(Families& all, const MetricsSnapshot::Endurance& endurance,
                  uint64_t capacity_bytes) {
  AddOne(all, "cairn_endurance_written_bytes_per_day", kGauge,
         "Bytes written to the targets a day, over the last day.", endurance.bytes_per_day);
  AddOne(all, "cairn_endurance_drive_writes_per_day", kGauge,
         "The same in multiples of the targets' size.",
         capacity_bytes == 0 ? 0 : endurance.bytes_per_day / Number(capacity_bytes));
  AddOne(all, "cairn_endurance_rated_drive_writes_per_day", kGauge,
         "What the SSDs are rated for, by the configuration.",
         endurance.rated_drive_writes_per_day);
}

void AddProcess(Families& all, const MetricsSnapshot::Process& process) {
  MetricFamily info = Family("cairn_build_info", kGauge, "Always 1; the labels say what runs.");
  info.metric.push_back(
      Sample(kGauge, 1, {{"version", process.version}, {"poller", process.poller}}));
  all.push_back(std::move(info));
  AddOne(all, "cairn_start_time_seconds", kGauge, "When the process started, in Unix time.",
         process.start_unix_seconds);
}

void AddStates(Families& all, std::string name, std::string_view help,
               const std::map<MemberState, uint64_t>& counts) {
  MetricFamily family = Family(std::move(name), kGauge, help);
  for (const MemberState state : {MemberState::kJoining, MemberState::kUp, MemberState::kSuspect,
                                  MemberState::kLost}) {
    const auto count = counts.find(state);
    const double value = count == counts.end() ? 0 : Number(count->second);
    family.metric.push_back(Sample(kGauge, value, {{"state", NameOf(state)}}));
  }
  all.push_back(std::move(family));
}

void AddSetAside(Families& all, const std::vector<ClusterView::SetAside>& targets) {
  AddOne(all, "cairn_cluster_targets_set_aside", kGauge,
         "While this node makes the map: targets that most nodes find slow, so that they hold no "
         "part of the index.",
         Number(targets.size()));
  if (targets.empty()) return;
  MetricFamily family = Family("cairn_cluster_target_set_aside", kGauge,
                               "1 for each of cairn_cluster_targets_set_aside.");
  for (const ClusterView::SetAside& one : targets) {
    family.metric.push_back(
        Sample(kGauge, 1, {{"target", std::to_string(one.target.value)}, {"node", one.node}}));
  }
  all.push_back(std::move(family));
}

void AddCluster(Families& all, const ClusterView& view) {
  AddOne(all, "cairn_cluster_epoch", kGauge, "Of the cluster map that this node has.",
         Number(view.epoch));
  AddOne(all, "cairn_cluster_protocol", kGauge, "The version of messages that all nodes speak.",
         view.protocol);
  AddStates(all, "cairn_cluster_nodes", "Nodes in the map, by their state.", view.nodes);
  AddStates(all, "cairn_cluster_targets", "Targets in the map, by their state.", view.targets);
  AddOne(all, "cairn_cluster_draining_targets", kGauge, "Targets that are being emptied.",
         Number(view.draining_targets));
  AddOne(all, "cairn_cluster_groups", kGauge, "Index groups.", Number(view.groups));
  AddOne(all, "cairn_cluster_groups_here", kGauge, "Of which this node is the home.",
         Number(view.groups_here));
  AddOne(all, "cairn_cluster_groups_homeless", kGauge,
         "Whose home does not live: their blocks can be read, and none can be put.",
         Number(view.groups_homeless));
  AddOne(all, "cairn_cluster_groups_filling", kGauge,
         "Of which some replica does not have everything yet.", Number(view.groups_filling));
  AddOne(all, "cairn_cluster_targets_slow", kGauge,
         "Targets that this node finds slow.",
         Number(view.targets_slow));
  AddSetAside(all, view.set_aside);
  AddOne(all, "cairn_cluster_coordinates", kGauge, "1 while this node makes the map.",
         view.coordinates ? 1 : 0);
  AddOne(all, "cairn_cluster_holds_lease", kGauge,
         "1 while this node is surely a member, by its own clock.", view.holds_lease ? 1 : 0);
}

void AddCertificates(Families& all, const std::vector<MetricsSnapshot::CertificateEnd>& ends) {
  if (ends.empty()) return;
  MetricFamily family = Family("cairn_tls_certificate_end_seconds", kGauge,
                               "Unix time at which the certificate in use, or one between it and "
                               "its root, ends.");
  for (const MetricsSnapshot::CertificateEnd& end : ends) {
    family.metric.push_back(
        Sample(kGauge, static_cast<double>(end.ends_at.value) / 1e3, {{"use", end.use}}));
  }
  all.push_back(std::move(family));
}

// For the visitors of counters: each is a metric whose name begins so.
auto Adder(Families& all, const char* prefix) {
  return [&all, prefix](std::string_view name, bool is_gauge, uint64_t value,
                        std::string_view help) {
    AddOne(all, std::string(prefix).append(name), is_gauge ? kGauge : kCounter, help,
           Number(value));
  };
}

void AddTransport(Families& all, const TransportStats& stats) {
  VisitNetworkStats(stats.network, Adder(all, "cairn_transport_"));
  if (stats.devices) VisitDeviceStats(*stats.devices, Adder(all, "cairn_rdma_"));
}

}  // namespace

double WriteAmplification(const StoreStats& stats) {
  const uint64_t put = stats.bytes_appended - stats.bytes_moved;
  return put == 0 ? 1 : Number(stats.bytes_appended) / Number(put);
}

std::string MetricsText(const MetricsSnapshot& snapshot) {
  Families all;
  if (snapshot.process) AddProcess(all, *snapshot.process);
  AddFunnel(all, snapshot);
  AddStore(all, snapshot.store);
  if (snapshot.calls) AddCalls(all, *snapshot.calls);
  AddTargets(all, snapshot.targets);
  AddSpaces(all, snapshot.spaces);
  if (snapshot.scrub) AddMaintenance(all, "cairn_scrub", *snapshot.scrub);
  if (snapshot.repair) AddMaintenance(all, "cairn_repair", *snapshot.repair);
  if (snapshot.endurance) {
    AddEndurance(all, *snapshot.endurance, snapshot.store.capacity_bytes);
  }
  if (snapshot.cluster) AddCluster(all, *snapshot.cluster);
  if (snapshot.transport) AddTransport(all, *snapshot.transport);
  AddCertificates(all, snapshot.certificate_ends);
  if (snapshot.server) VisitServerStats(*snapshot.server, Adder(all, "cairn_server_"));
  return prometheus::TextSerializer().Serialize(all);
}

}  // namespace cairn::kv
