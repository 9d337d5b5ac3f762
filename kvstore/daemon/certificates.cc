// Three groups of files, and one way to load each. Those for etcd are read by libcurl.
#include "kvstore/daemon/certificates.h"

#include <utility>

namespace cairn::kv {
namespace {

constexpr int64_t kDay = 24LL * 3600 * 1000;
constexpr int64_t kWarnBefore = 14 * kDay;

constexpr const char* kOfClients = "listen.tls_cert_file, tls_key_file, tls_client_ca_file";
constexpr const char* kOfNodes = "cluster.tls_cert_file, tls_key_file, tls_ca_file";
constexpr const char* kOfEtcd = "cluster.etcd_cert_file, etcd_key_file, etcd_ca_file";

// Of a cluster that is not enabled, nothing.
TlsFiles Enabled(const ClusterConfig& cluster, const TlsFiles& files) {
  return cluster.enabled ? files : TlsFiles{};
}

Status Named(const std::string& settings, const Status& status) {
  return Status(Code::kInvalid, settings + ": " + status.message() +
                                    "; name PEM files that belong together, and that the user of "
                                    "cairnd may read");
}

}  // namespace

Result<Certificates::Group> Certificates::LoadGroup(std::string use, std::string settings,
                                                    const TlsFiles& files) {
  Group group{.use = std::move(use), .settings = std::move(settings)};
  if (files.cert_file.empty() && files.ca_file.empty()) return group;
  auto loaded = RenewedTls::Load(files);
  if (!loaded.ok()) return Named(group.settings, loaded.status());
  group.tls = std::move(loaded).value();
  return group;
}

Result<std::unique_ptr<Certificates>> Certificates::Load(const DaemonConfig& config) {
  auto loaded = std::make_unique<Certificates>();
  KV_ASSIGN_OR_RETURN(loaded->clients_,
                      LoadGroup("clients", kOfClients, config.listen.tcp_tls));
  const TlsFiles nodes = Enabled(config.cluster, config.cluster.tls);
  KV_ASSIGN_OR_RETURN(loaded->nodes_, LoadGroup("nodes", kOfNodes, nodes));
  return loaded;
}

void Certificates::Refresh(UnixMillis now, Log& log) {
  RefreshGroup(clients_, now, log);
  RefreshGroup(nodes_, now, log);
}

void Certificates::RefreshGroup(Group& group, UnixMillis now, Log& log) {
  if (group.tls == nullptr) return;
  const Result<bool> renewed = group.tls->Refresh();
  if (!renewed.ok()) {
    log.Error(Named(group.settings, renewed.status()).message() +
              "; what they had before stays in use");
  } else if (renewed.value()) {
    log.Info("the certificates for " + group.use + " have changed: new connections use them");
    group.warned_at = {};
  }
  const std::optional<UnixMillis> end = group.tls->ends_at();
  const bool soon = end && end->value - now.value < kWarnBefore;
  if (!soon || now.value - group.warned_at.value < kDay) return;
  group.warned_at = now;
  const int64_t days = (end->value - now.value) / kDay;
  log.Warning("the certificate for " + group.use +
              (end->value > now.value ? " ends in " + std::to_string(days) + " days"
                                      : " has ended: connections with it are refused") +
              "; put a new one into the files of " + group.settings);
}

std::vector<Certificates::End> Certificates::Ends() const {
  std::vector<End> ends;
  for (const Group* group : {&clients_, &nodes_}) {
    const auto end = group->tls != nullptr ? group->tls->ends_at() : std::nullopt;
    if (end) ends.push_back({group->use, *end});
  }
  return ends;
}

Status CheckCertificates(const DaemonConfig& config) {
  const ClusterConfig& cluster = config.cluster;
  const std::pair<const char*, TlsFiles> groups[] = {
      {kOfClients, config.listen.tcp_tls},
      {kOfNodes, Enabled(cluster, cluster.tls)},
      {kOfEtcd, Enabled(cluster, cluster.etcd_tls)}};
  std::string lines;
  for (const auto& [settings, files] : groups) {
    if (files.cert_file.empty() && files.ca_file.empty()) continue;
    const Status status = TlsContext::Load(files).status();
    if (status.ok()) continue;
    lines.append(lines.empty() ? "" : "\n").append(Named(settings, status).message());
  }
  return lines.empty() ? Status() : Status(Code::kInvalid, lines);
}

}  // namespace cairn::kv
