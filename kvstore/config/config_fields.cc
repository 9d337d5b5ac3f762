// The rows. A row names its member by a small function that returns a reference to it.
#include "kvstore/config/config_fields.h"

#include <algorithm>
#include <array>
#include <limits>

#include "kvstore/config/field_rows.h"

namespace cairn::kv {
namespace {

using C = DaemonConfig;
constexpr int64_t kMebi = kMiB;
constexpr int64_t kGibi = kGiB;
constexpr int64_t kTebi = kTiB;

void AddStore(std::vector<ConfigField>& fields) {
  fields.push_back(Text("store.data_dir",
                        "Folder of the targets. One process at a time may have it.",
                        [](C& c) -> auto& { return c.node.data_dir; }));
  fields.push_back(Number("store.targets", FieldKind::kCount, 1, 100,
                          "Files that stand for SSDs, each its own failure domain. A namespace "
                          "of k+m shards needs at least k+m.",
                          [](C& c) -> auto& { return c.node.targets; }));
  fields.push_back(Number("store.target_size", FieldKind::kBytes, 64 * kMebi, 1024 * kTebi,
                          "Of each target made from now on; allocated when it is made.",
                          [](C& c) -> auto& { return c.node.target_bytes; }));
  fields.push_back(Flag("store.self_test",
                        "Before serving, put, get, verify and delete one block in a namespace "
                        "of its own, and do not start if that fails.",
                        [](C& c) -> auto& { return c.self_test; }));
  fields.push_back(Real("store.drive_writes_per_day", 0.01, 1000.0,
                        "What the SSDs are rated for. The metric of endurance is measured "
                        "against it; nothing is refused.",
                        [](C& c) -> auto& { return c.drive_writes_per_day; }));
}

void AddListen(std::vector<ConfigField>& fields) {
  fields.push_back(Text("listen.unix_socket",
                        "Path of the unix socket; auto: cairn.sock in the data folder; empty: "
                        "none.",
                        [](C& c) -> auto& { return c.listen.unix_socket; }));
  fields.push_back(Text("listen.tcp",
                        "Address for clients over TCP, such as 127.0.0.1:7411; empty: none.",
                        [](C& c) -> auto& { return c.listen.tcp; }));
  fields.push_back(Flag("listen.tcp_beyond_loopback",
                        "Allow listen.tcp to be reachable from other machines: with certificates "
                        "below, or on a network that you trust.",
                        [](C& c) -> auto& { return c.listen.tcp_beyond_loopback; }));
  fields.push_back(Text("listen.tls_cert_file",
                        "PEM file of the certificate for listen.tcp: all of it is TLS 1.3 then; "
                        "empty: nothing is encrypted.",
                        [](C& c) -> auto& { return c.listen.tcp_tls.cert_file; }));
  fields.push_back(Text("listen.tls_key_file", "PEM file of its key.",
                        [](C& c) -> auto& { return c.listen.tcp_tls.key_file; }));
  fields.push_back(Text("listen.tls_client_ca_file",
                        "PEM file of who signs clients' certificates: they must show one; empty: "
                        "none is asked for.",
                        [](C& c) -> auto& { return c.listen.tcp_tls.ca_file; }));
  fields.push_back(Text("listen.admin_token_file",
                        "The file whose first line clients over TCP must name to administer; "
                        "empty: none of them may. On the unix socket the file's mode decides.",
                        [](C& c) -> auto& { return c.listen.admin_token_file; }));
  fields.push_back(Text("listen.metrics",
                        "Address of /metrics, /healthz and /readyz over HTTP; empty: none.",
                        [](C& c) -> auto& { return c.listen.metrics; }));
  fields.push_back(Flag("listen.metrics_beyond_loopback",
                        "Allow listen.metrics to be reachable from other machines: who reads it "
                        "learns the names of namespaces and how much they are used.",
                        [](C& c) -> auto& { return c.listen.metrics_beyond_loopback; }));
}

void AddMemory(std::vector<ConfigField>& fields) {
  const auto add = [&](std::string_view key, int64_t min, std::string_view help, auto member) {
    fields.push_back(Number(key, FieldKind::kBytes, min, 16 * kTebi, help, member));
  };
  add("memory.write_buffer", 64 * kMebi, "For parity, and copies of unaligned memory, of puts.",
      [](C& c) -> auto& { return c.node.node.store.write_buffer_bytes; });
  add("memory.copy_buffer", 64 * kMebi, "For gets into memory that is not aligned.",
      [](C& c) -> auto& { return c.node.node.store.reader.copy_bytes_max; });
  add("memory.rebuild_buffer", 128 * kMebi, "For the survivors that degraded reads decode.",
      [](C& c) -> auto& { return c.node.node.store.reader.rebuild_bytes_max; });
  add("memory.index_cache", kMebi, "For manifests of runs that were asked for lately.",
      [](C& c) -> auto& { return c.node.node.home.index_cache_bytes; });
  add("memory.block_cache", 0, "For hot blocks, served without an SSD.",
      [](C& c) -> auto& { return c.node.node.store.cache.bytes_max; });
  add("memory.metadata_cache", kMebi, "RocksDB's block cache, for all targets together.",
      [](C& c) -> auto& { return c.node.metadata_cache_bytes; });
  add("memory.metadata_memtable", 4 * kMebi, "RocksDB's memtables, for all targets together.",
      [](C& c) -> auto& { return c.node.metadata_memtable_bytes; });
  add("memory.session_payload", 64 * kMebi,
      "For puts and gets of all clients through their sockets.",
      [](C& c) -> auto& { return c.server.payload_bytes_max; });
  add("memory.put_in_flight_max", 64 * kMebi,
      "Bytes of callers' puts at once; what comes beyond is refused as overloaded.",
      [](C& c) -> auto& { return c.node.node.store.put_bytes_in_flight_max; });
}

void AddSessions(std::vector<ConfigField>& fields) {
  const auto count = [&](std::string_view key, int64_t max, std::string_view help, auto member) {
    fields.push_back(Number(key, FieldKind::kCount, 1, max, help, member));
  };
  count("sessions.max", 1 << 20, "Clients at once.",
        [](C& c) -> auto& { return c.server.sessions_max; });
  count("sessions.requests_max", 65'536,
        "Requests in flight of one client; what comes beyond is refused as overloaded.",
        [](C& c) -> auto& { return c.server.requests_max; });
  fields.push_back(Number("sessions.bytes_max", FieldKind::kBytes, 64 * kMebi, 16 * kTebi,
                          "Payload in flight of one client through its socket; shared memory "
                          "does not count.",
                          [](C& c) -> auto& { return c.server.session_bytes_max; }));
  count("sessions.regions_max", 65'536, "Regions of shared memory of one client.",
        [](C& c) -> auto& { return c.server.regions_max; });
  fields.push_back(Number("sessions.region_bytes_max", FieldKind::kBytes, kMebi, 1024 * kTebi,
                          "Bytes of these.",
                          [](C& c) -> auto& { return c.server.region_bytes_max; }));
  fields.push_back(Duration("sessions.timeout", Millis(100), Seconds(3600),
                            "A client that is silent for so long has died: its leases end.",
                            [](C& c) -> auto& { return c.server.session_timeout; }));
  fields.push_back(Duration("sessions.stall_timeout", Millis(100), Seconds(3600),
                            "A client that does not take its answers for so long is cut off.",
                            [](C& c) -> auto& { return c.server.stall_timeout; }));
  count("leases.max", 1 << 24, "Leases at once; beyond it lookups give none.",
        [](C& c) -> auto& { return c.node.node.home.leases.leases_max; });
  count("leases.stripes_max", 1 << 26, "Stripes under leases, counted once a lease.",
        [](C& c) -> auto& { return c.node.node.home.leases.stripes_max; });
  fields.push_back(Number("leases.capacity_percent_max", FieldKind::kCount, 0, 90,
                          "Of the capacity: what leases may keep from eviction at once.",
                          [](C& c) -> auto& { return c.node.node.leased_percent_max; }));
}

void AddAdmission(std::vector<ConfigField>& fields) {
  fields.push_back(Choice("admission.policy", {"all", "second_sight", "write_budget"},
                          "Which new blocks are written. all; second_sight: a stripe when its "
                          "first block is put for the second time, so that what is asked once "
                          "wears out nothing; write_budget: as many as the SSDs may take a day.",
                          [](C& c) -> auto& { return c.node.node.store.admission.policy; }));
  fields.push_back(Number("admission.sightings_max", FieldKind::kCount, 1024, 1 << 30,
                          "Of second_sight: blocks remembered, 4 bytes each.",
                          [](C& c) -> auto& { return c.node.node.store.admission.sightings_max; }));
  fields.push_back(Real("admission.drive_writes_per_day", 0.01, 1000.0,
                        "Of write_budget: what is put may fill all targets so many times a day. "
                        "What is saved up for an hour may be spent at once.",
                        [](C& c) -> auto& {
                          return c.node.node.store.admission.drive_writes_per_day;
                        }));
}

void AddUpkeep(std::vector<ConfigField>& fields) {
  fields.push_back(Number("reclaim.free_segments_min_percent", FieldKind::kCount, 1, 50,
                          "The watermark: reclaim begins when less of a target is free.",
                          [](C& c) -> auto& {
                            return c.node.node.reclaim.free_segments_min_percent;
                          }));
  fields.push_back(Number("reclaim.move_percent_max", FieldKind::kCount, 0, 100,
                          "Bytes that reclaim may rewrite, in percent of bytes put, over all "
                          "targets (in a cluster: of each): what is live and recent is moved up "
                          "to here, and evicted beyond.",
                          [](C& c) -> auto& { return c.node.node.reclaim.move_percent_max; }));
  fields.push_back(Duration("upkeep.checkpoint_interval", Millis(10), Seconds(3600),
                            "A put that is acknowledged as cached survives a power cut after "
                            "this time at most.",
                            [](C& c) -> auto& { return c.node.node.checkpoint_interval; }));
  fields.push_back(Duration("upkeep.maintenance_interval", Millis(1), Seconds(60),
                            "How often expired blocks are removed and space is looked after.",
                            [](C& c) -> auto& { return c.node.node.maintenance_interval; }));
  fields.push_back(Duration("upkeep.orphan_age", Seconds(1), Seconds(86'400),
                            "Shards that were written but never published are dropped when so "
                            "old.",
                            [](C& c) -> auto& { return c.node.node.orphan_age; }));
}

void AddRepair(std::vector<ConfigField>& fields) {
  fields.push_back(Flag("repair.automatic",
                        "Restore what stripes lost with their targets without being asked: soon "
                        "after the start, then at every interval.",
                        [](C& c) -> auto& { return c.node.node.repair.automatic; }));
  fields.push_back(Duration("repair.interval", Seconds(1), Seconds(30 * 86'400),
                            "Between two automatic passes.",
                            [](C& c) -> auto& { return c.node.node.repair.interval; }));
  fields.push_back(Number("repair.bytes_per_second", FieldKind::kBytes, 0, kTebi,
                          "Of automatic passes, read and written; 0: no limit.",
                          [](C& c) -> auto& { return c.node.node.repair.bytes_per_second; }));
}

void AddIo(std::vector<ConfigField>& fields) {
  fields.push_back(Choice("io.engine", {"auto", "io_uring", "epoll"},
                          "auto: io_uring, and epoll with threads where a container forbids it.",
                          [](C& c) -> auto& { return c.node.poller.engine; }));
  fields.push_back(Duration("io.spin", Nanos{0}, Millis(10),
                            "How long the store's thread may poll before it sleeps while "
                            "something fast is in flight. Sleeping costs a wake-up, polling a "
                            "core.",
                            [](C& c) -> auto& { return c.node.poller.spin_max; }));
  fields.push_back(Duration("io.spin_after_request", Nanos{0}, Millis(10),
                            "How long it may poll for the next request of a client.",
                            [](C& c) -> auto& { return c.server.spin_after_request; }));
  fields.push_back(Number("io.disk_threads", FieldKind::kCount, 1, 256,
                          "Threads that read and write under the epoll engine.",
                          [](C& c) -> auto& { return c.node.poller.disk_threads; }));
  fields.push_back(Number("io.worker_threads", FieldKind::kCount, 1, 256,
                          "Threads for checksums and parity, and as many for metadata.",
                          [](C& c) -> auto& { return c.node.worker_threads; }));
  fields.push_back(Number("io.reads_in_flight_max", FieldKind::kCount, 1, 65'536,
                          "Shard reads at once, over all targets.",
                          [](C& c) -> auto& {
                            return c.node.node.store.reader.reads_in_flight_max;
                          }));
}

void AddLog(std::vector<ConfigField>& fields) {
  fields.push_back(Choice("log.level", {"debug", "info", "warning", "error"},
                          "What is written to standard error. Read again on SIGHUP.",
                          [](C& c) -> auto& { return c.log.level; }));
  fields.push_back(Choice("log.format", {"text", "json"},
                          "text: for people; json: one object a line, for machines.",
                          [](C& c) -> auto& { return c.log.format; }));
}

std::vector<ConfigField> MakeFields() {
  std::vector<ConfigField> fields;
  AddStore(fields);
  AddListen(fields);
  AddCluster(fields);
  AddMemory(fields);
  AddSessions(fields);
  AddAdmission(fields);
  AddUpkeep(fields);
  AddRepair(fields);
  AddIo(fields);
  AddLog(fields);
  return fields;
}

constexpr std::array<ConfigSection, 12> kSections = {{
    {"store", "Where the blocks are."},
    {"listen", "Who may come in, and where."},
    {"cluster", "One node of many, which keep their map in etcd."},
    {"memory", "All memory that the store takes for itself; callers' own is not in it."},
    {"sessions", "What one client may have, and all of them."},
    {"leases", "Promises not to evict what a lookup has found."},
    {"admission", "What is written at all: misses in exchange for the life of the SSDs."},
    {"reclaim", "How space comes back from what is old."},
    {"upkeep", "What happens in the background, how often."},
    {"repair", "What is restored when targets are lost."},
    {"io", "Threads, and how the kernel is asked."},
    {"log", "What is said about all this."},
}};

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::span<const ConfigField> ConfigFields() {
  static const std::vector<ConfigField> fields = MakeFields();
  return fields;
}

std::span<const ConfigSection> ConfigSections() { return kSections; }

const ConfigField* FindField(std::string_view key) {
  for (const ConfigField& field : ConfigFields()) {
    if (field.key == key) return &field;
  }
  return nullptr;
}

std::string_view NearestKey(std::string_view key) {
  std::string_view best;
  size_t best_distance = std::numeric_limits<size_t>::max();
  const std::string_view name = key.substr(key.find('.') + 1);
  for (const ConfigField& field : ConfigFields()) {
    const std::string_view known = field.key.substr(field.key.find('.') + 1);
    // The right name in the wrong section is as near as one wrong letter.
    const size_t distance =
        name == known ? 1 : EditDistance(key.substr(0, 100), field.key);
    if (distance < best_distance) {
      best_distance = distance;
      best = field.key;
    }
  }
  return best_distance <= std::max<size_t>(3, key.size() / 3) ? best : std::string_view();
}

}  // namespace cairn::kv
