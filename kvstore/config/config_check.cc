// One function for each group of relations; all of them are checked, so that a person sees all.
#include "kvstore/config/config_check.h"

#include "kvstore/config/address_text.h"
#include "kvstore/config/cluster_check.h"
#include "kvstore/config/quantity.h"

namespace cairn::kv {
namespace {

using Lines = std::vector<std::string>;

void CheckStore(const DaemonConfig& config, Lines& lines) {
  const EmbeddedOptions& node = config.node;
  if (node.data_dir.empty()) lines.push_back("store.data_dir: is empty; name a folder");
  if (node.target_bytes % kSectorSize != 0) {
    lines.push_back("store.target_size: " + FormatBytes(node.target_bytes) +
                    " is not a multiple of " + FormatBytes(kSectorSize) + "; use whole MiB");
  }
}

void CheckTcp(const ListenConfig& listen, Lines& lines) {
  if (listen.tcp.empty()) return;
  const auto address = SplitAddress(listen.tcp);
  if (!address) {
    lines.push_back("listen.tcp: '" + listen.tcp +
                    "' is no address; write HOST:PORT, such as 127.0.0.1:7411");
  } else if (!IsLoopback(address->host) && !listen.tcp_beyond_loopback) {
    lines.push_back("listen.tcp: " + address->host +
                    " can be reached from other machines; set listen.tcp_beyond_loopback = true "
                    "if the network is safe or certificates guard it, or use 127.0.0.1");
  }
}

void CheckTls(const ListenConfig& listen, Lines& lines) {
  const TlsFiles& tls = listen.tcp_tls;
  CheckKeyGoesWithCertificate({"listen.tls_cert_file", tls.cert_file},
                              {"listen.tls_key_file", tls.key_file}, lines);
  if (tls.cert_file.empty() && !tls.ca_file.empty()) {
    lines.push_back("listen.tls_client_ca_file: asks for clients' certificates, and there is none "
                    "to show them; set listen.tls_cert_file and listen.tls_key_file");
  }
  if (!tls.cert_file.empty() && listen.tcp.empty()) {
    lines.push_back("listen.tls_cert_file: is for listen.tcp, which is empty; leave it out or set "
                    "both");
  }
}

void CheckMetrics(const ListenConfig& listen, Lines& lines) {
  if (listen.metrics.empty()) return;
  const auto address = SplitAddress(listen.metrics);
  if (!address) {
    lines.push_back("listen.metrics: '" + listen.metrics +
                    "' is no address; write HOST:PORT, such as 127.0.0.1:9511");
    return;
  }
  if (!IsLoopback(address->host) && !listen.metrics_beyond_loopback) {
    lines.push_back("listen.metrics: " + address->host +
                    " can be reached from other machines, and nobody is asked who he is; set "
                    "listen.metrics_beyond_loopback = true if the network is safe, or use "
                    "127.0.0.1");
  }
  if (listen.metrics == listen.tcp && address->port != 0) {
    lines.push_back("listen.metrics: is the same address as listen.tcp; choose another port");
  }
}

void CheckListen(const DaemonConfig& config, Lines& lines) {
  const ListenConfig& listen = config.listen;
  const std::string socket = config.SocketPath();
  if (socket.size() > kSocketPathMax) {
    lines.push_back("listen.unix_socket: " + socket + " has " + std::to_string(socket.size()) +
                    " characters, and the system allows " + std::to_string(kSocketPathMax) +
                    "; name a shorter path");
  }
  if (listen.unix_socket.empty() && listen.tcp.empty()) {
    lines.push_back(
        "listen.unix_socket: it and listen.tcp are both empty: nobody could come in; set one");
  }
  CheckTcp(listen, lines);
  CheckTls(listen, lines);
  CheckMetrics(listen, lines);
}

void CheckAdmin(const DaemonConfig& config, Lines& lines) {
  if (!config.listen.admin_token_file.empty() && config.listen.tcp.empty()) {
    lines.push_back(
        "listen.admin_token_file: is for TCP, and listen.tcp is empty; leave one out or set both");
  }
}

void CheckMemory(const DaemonConfig& config, const MachineFacts& machine, Lines& lines) {
  const StripedStoreOptions& store = config.node.node.store;
  if (store.reader.rebuild_bytes_max < 2 * kBlockSizeMax) {
    lines.push_back("memory.rebuild_buffer: a degraded read of the largest block needs " +
                    FormatBytes(2 * kBlockSizeMax) + "; raise it to that");
  }
  if (config.server.session_bytes_max > config.server.payload_bytes_max) {
    lines.push_back("sessions.bytes_max: " + FormatBytes(config.server.session_bytes_max) +
                    " of one client is more than memory.session_payload (" +
                    FormatBytes(config.server.payload_bytes_max) + ") of all; lower it");
  }
  const uint64_t limit = MemoryLimit(config);
  if (machine.memory_bytes > 0 && limit > machine.memory_bytes / 10 * 8) {
    lines.push_back("memory: the limits add up to " + RoughBytes(static_cast<double>(limit)) +
                    ", and the machine has " +
                    RoughBytes(static_cast<double>(machine.memory_bytes)) +
                    "; keep them below 80 % of it");
  }
}

void CheckUpkeep(const DaemonConfig& config, Lines& lines) {
  const NodeOptions& node = config.node.node;
  if (node.checkpoint_interval < node.maintenance_interval) {
    lines.push_back("upkeep.checkpoint_interval: " + FormatDuration(node.checkpoint_interval) +
                    " is shorter than upkeep.maintenance_interval (" +
                    FormatDuration(node.maintenance_interval) + "); make it at least as long");
  }
  if (node.orphan_age < node.checkpoint_interval) {
    lines.push_back("upkeep.orphan_age: " + FormatDuration(node.orphan_age) +
                    " is shorter than upkeep.checkpoint_interval (" +
                    FormatDuration(node.checkpoint_interval) +
                    "): shards of puts in progress would be dropped; make it longer");
  }
}

}  // namespace

uint64_t MemoryLimit(const DaemonConfig& config) {
  const EmbeddedOptions& node = config.node;
  const AdmissionOptions& admission = node.node.store.admission;
  const bool remembers = admission.policy == AdmissionPolicy::kSecondSight;
  const uint64_t sightings = remembers ? uint64_t{4} * admission.sightings_max : 0;
  return sightings + node.node.store.write_buffer_bytes + node.node.store.reader.copy_bytes_max +
         node.node.store.reader.rebuild_bytes_max + node.node.home.index_cache_bytes +
         node.node.store.cache.bytes_max + node.metadata_cache_bytes +
         node.metadata_memtable_bytes + config.server.payload_bytes_max;
}

Status CheckConfig(const DaemonConfig& config, const MachineFacts& machine) {
  Lines lines;
  CheckStore(config, lines);
  CheckListen(config, lines);
  CheckAdmin(config, lines);
  CheckCluster(config, lines);
  CheckMemory(config, machine, lines);
  CheckUpkeep(config, lines);
  std::string text;
  for (const std::string& line : lines) text.append(text.empty() ? "" : "\n").append(line);
  return text.empty() ? Status() : Status(Code::kInvalid, std::move(text));
}

std::vector<std::string> ConfigWarnings(const DaemonConfig& config) {
  Lines lines;
  const NamespaceOptions usual;
  const uint32_t shards = uint32_t{usual.data_shards} + usual.parity_shards;
  const bool alone = !config.cluster.enabled;  // Else the targets of all nodes count.
  if (alone && config.node.targets < shards) {
    lines.push_back("store.targets: with " + std::to_string(config.node.targets) +
                    " targets a namespace cannot be " + std::to_string(usual.data_shards) + "+" +
                    std::to_string(usual.parity_shards) +
                    ", the default; create namespaces with fewer shards");
  }
  if (alone && config.node.targets < kIndexReplicas) {
    lines.push_back("store.targets: an index of " + std::to_string(kIndexReplicas) +
                    " copies needs " + std::to_string(kIndexReplicas) +
                    " targets: the loss of one loses blocks");
  }
  const AdmissionOptions& admission = config.node.node.store.admission;
  const bool has_budget = admission.policy == AdmissionPolicy::kWriteBudget;
  if (has_budget && admission.drive_writes_per_day > config.drive_writes_per_day) {
    lines.push_back(
        "admission.drive_writes_per_day: lets in more than the SSDs are rated for "
        "(store.drive_writes_per_day); lower it");
  }
  if (config.node.node.reclaim.move_percent_max == 0) {
    lines.push_back("reclaim.move_percent_max: 0 evicts blocks that are in use with their segment");
  }
  WarnOfCluster(config.cluster, lines);
  return lines;
}

}  // namespace cairn::kv
