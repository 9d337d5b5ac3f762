// Three groups of files, and one way to load each.
#include "kvstore/daemon/certificates.h"

#include <string>

namespace cairn::kv {
namespace {

struct NamedFiles {
  std::string settings;
  TlsFiles files;
};

NamedFiles OfClients(const DaemonConfig& config) {
  return {"listen.tls_cert_file, tls_key_file, tls_client_ca_file", config.listen.tcp_tls};
}

NamedFiles OfNodes(const DaemonConfig& config) {
  const ClusterConfig& cluster = config.cluster;
  if (!cluster.enabled) return {};
  return {"cluster.tls_cert_file, tls_key_file, tls_ca_file", cluster.tls};
}

NamedFiles OfEtcd(const DaemonConfig& config) {
  const ClusterConfig& cluster = config.cluster;
  if (!cluster.enabled) return {};
  return {"cluster.etcd_cert_file, etcd_key_file, etcd_ca_file", cluster.etcd_tls};
}

Result<std::shared_ptr<const TlsContext>> Load(const NamedFiles& named) {
  if (named.files.cert_file.empty() && named.files.ca_file.empty()) {
    return std::shared_ptr<const TlsContext>();
  }
  auto loaded = TlsContext::Load(named.files);
  if (loaded.ok()) return loaded;
  return Status(Code::kInvalid, named.settings + ": " + loaded.status().message() +
                                    "; name PEM files that belong together, and that the user of "
                                    "cairnd may read");
}

}  // namespace

Result<std::shared_ptr<const TlsContext>> ClientsTls(const DaemonConfig& config) {
  return Load(OfClients(config));
}

Result<std::shared_ptr<const TlsContext>> NodesTls(const DaemonConfig& config) {
  return Load(OfNodes(config));
}

Status CheckCertificates(const DaemonConfig& config) {
  std::string lines;
  for (const NamedFiles& named : {OfClients(config), OfNodes(config), OfEtcd(config)}) {
    const Status status = Load(named).status();
    if (!status.ok()) lines.append(lines.empty() ? "" : "\n").append(status.message());
  }
  return lines.empty() ? Status() : Status(Code::kInvalid, lines);
}

}  // namespace cairn::kv
