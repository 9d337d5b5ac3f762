// Names, addresses, etcd, deadlines: a function each.
#include "kvstore/config/cluster_check.h"

#include <algorithm>

#include "kvstore/config/address_text.h"
#include "kvstore/config/quantity.h"

namespace cairn::kv {
namespace {

using Lines = std::vector<std::string>;

constexpr size_t kNameSizeMax = 63;  // What DNS allows for a label: pods and hosts have such names.

bool IsName(const std::string& text) {
  return !text.empty() && text.size() <= kNameSizeMax &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
         });
}

void CheckNames(const ClusterConfig& cluster, Lines& lines) {
  const auto check = [&](const char* key, const std::string& name) {
    if (IsName(name)) return;
    lines.push_back(std::string(key) + ": '" + name + "' is no name; write 1 to " +
                    std::to_string(kNameSizeMax) + " small letters, digits, hyphens and points");
  };
  check("cluster.name", cluster.name);
  check("cluster.node", cluster.node);
  if (!cluster.rack.empty()) check("cluster.rack", cluster.rack);
}

void CheckListenAt(const ClusterConfig& cluster, const std::string& text, Lines& lines) {
  const bool rdma = cluster.transport == ClusterTransport::kRdma;
  const auto listen = SplitAddress(text);
  if (!listen) {
    lines.push_back("cluster.listen: '" + text +
                    "' is no address; write HOST:PORT, such as 127.0.0.1:7412");
    return;
  }
  if (rdma && (IsLoopback(listen->host) || IsWildcard(listen->host))) {
    lines.push_back("cluster.listen: " + listen->host +
                    " is the address of no RDMA port; write that of one, such as 10.0.0.1:7412 "
                    "(`rdma link` lists them), or cluster.transport = \"tcp\"");
  }
  if ((rdma || !IsLoopback(listen->host)) && cluster.secret_file.empty()) {
    lines.push_back("cluster.secret_file: is empty, and cluster.listen (" + listen->host +
                    ") can be reached from other machines; name a file with the secret that all "
                    "nodes share" + (rdma ? "" : ", or listen on 127.0.0.1"));
  }
  if (listen->port == 0) {
    lines.push_back("cluster.listen: names no port, and other nodes must know it; write one, such "
                    "as 7412");
  }
  if (!rdma && IsWildcard(listen->host) && cluster.advertise.empty()) {
    lines.push_back("cluster.advertise: is empty, and cluster.listen (" + listen->host +
                    ") is no address to connect to; write those that other nodes reach");
  }
}

void CheckListen(const ClusterConfig& cluster, Lines& lines) {
  std::vector<std::string> addresses = SplitList(cluster.listen);
  if (addresses.empty()) addresses.emplace_back();
  if (addresses.size() > 1 && cluster.transport == ClusterTransport::kTcp) {
    lines.push_back("cluster.listen: has " + std::to_string(addresses.size()) +
                    " addresses, and over TCP a node has one; write 0.0.0.0:7412 for all "
                    "networks, or cluster.transport = \"rdma\"");
    return;
  }
  for (const std::string& address : addresses) CheckListenAt(cluster, address, lines);
}

void CheckAdvertise(const ClusterConfig& cluster, Lines& lines) {
  for (const std::string& text : SplitList(cluster.advertise)) {
    const auto address = SplitAddress(text);
    if (!address || address->port == 0 || IsWildcard(address->host)) {
      lines.push_back("cluster.advertise: '" + text +
                      "' cannot be connected to; write HOST:PORT, such as 10.0.0.1:7412");
    }
  }
}

void CheckNodesTls(const ClusterConfig& cluster, Lines& lines) {
  const bool all = !cluster.tls.cert_file.empty() && !cluster.tls.key_file.empty() &&
                   !cluster.tls.ca_file.empty();
  const bool none = cluster.tls.cert_file.empty() && cluster.tls.key_file.empty() &&
                    cluster.tls.ca_file.empty();
  if (!none && cluster.transport == ClusterTransport::kRdma) {
    lines.push_back("cluster.tls_cert_file: is set, and RDMA encrypts nothing; leave it empty, or "
                    "write cluster.transport = \"tcp\"");
    return;
  }
  if (all || none) return;
  lines.push_back("cluster.tls_cert_file: goes with cluster.tls_key_file and cluster.tls_ca_file, "
                  "as nodes show each other certificates; set all three or none");
}

void CheckSharedPorts(const DaemonConfig& config, Lines& lines) {
  const auto listen = SplitAddress(config.cluster.listen);
  if (!listen || listen->port == 0) return;
  for (const auto& [key, text] : {std::pair("listen.tcp", config.listen.tcp),
                                  std::pair("listen.metrics", config.listen.metrics)}) {
    if (text != config.cluster.listen) continue;
    lines.push_back(std::string("cluster.listen: is the same address as ") + key +
                    "; choose another port");
  }
}

// Of "https://HOST:PORT". Nothing when it is no such address.
std::optional<AddressText> EtcdAddress(const std::string& endpoint) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (endpoint.starts_with(scheme)) {
      return SplitAddress(std::string_view(endpoint).substr(scheme.size()));
    }
  }
  return {};
}

void CheckEtcd(const ClusterConfig& cluster, Lines& lines) {
  const std::vector<std::string> endpoints = SplitList(cluster.etcd);
  if (endpoints.empty()) {
    lines.push_back("cluster.etcd: is empty; write the addresses of etcd's members");
  }
  const bool tls = std::any_of(endpoints.begin(), endpoints.end(),
                               [](const auto& e) { return e.starts_with("https://"); });
  for (const std::string& endpoint : endpoints) {
    if (!EtcdAddress(endpoint)) {
      lines.push_back("cluster.etcd: '" + endpoint +
                      "' is no address; write https://HOST:PORT, such as https://10.0.0.9:2379");
    } else if (tls && endpoint.starts_with("http://")) {
      lines.push_back("cluster.etcd: '" + endpoint + "' is not encrypted, and others are; write "
                      "https:// for all of them, or for none");
    }
  }
  CheckKeyGoesWithCertificate({"cluster.etcd_cert_file", cluster.etcd_tls.cert_file},
                              {"cluster.etcd_key_file", cluster.etcd_tls.key_file}, lines);
  const bool files = !cluster.etcd_tls.ca_file.empty() || !cluster.etcd_tls.cert_file.empty();
  if (files && !tls) {
    lines.push_back("cluster.etcd: certificates are set, and no address begins with https://; "
                    "write https:// or leave the files out");
  }
}

void CheckDeadlines(const ClusterConfig& cluster, Lines& lines) {
  if (cluster.lease.value % Seconds(1).value != 0) {
    lines.push_back("cluster.lease: " + FormatDuration(cluster.lease) +
                    " is not what etcd can count; write whole seconds");
  }
  if (cluster.suspect_after < cluster.lease) {
    lines.push_back("cluster.suspect_after: " + FormatDuration(cluster.suspect_after) +
                    " is shorter than cluster.lease (" + FormatDuration(cluster.lease) +
                    "), before which nobody is missed; make it at least as long");
  }
  if (cluster.lost_after <= cluster.suspect_after) {
    lines.push_back("cluster.lost_after: " + FormatDuration(cluster.lost_after) +
                    " is not longer than cluster.suspect_after (" +
                    FormatDuration(cluster.suspect_after) +
                    "): a restart would cost a rebuild; make it longer");
  }
}

}  // namespace

void CheckKeyGoesWithCertificate(const NamedFile& certificate, const NamedFile& key,
                                 Lines& lines) {
  if (certificate.path.empty() == key.path.empty()) return;
  lines.push_back(certificate.setting + ": goes with " + key.setting + "; set both or none");
}

void CheckCluster(const DaemonConfig& config, Lines& lines) {
  const ClusterConfig& cluster = config.cluster;
  if (!cluster.enabled) return;
  CheckNames(cluster, lines);
  CheckListen(cluster, lines);
  CheckAdvertise(cluster, lines);
  CheckNodesTls(cluster, lines);
  CheckSharedPorts(config, lines);
  CheckEtcd(cluster, lines);
  CheckDeadlines(cluster, lines);
}

void WarnOfCluster(const ClusterConfig& cluster, Lines& lines) {
  if (!cluster.enabled) return;
  for (const std::string& endpoint : SplitList(cluster.etcd)) {
    const auto address = EtcdAddress(endpoint);
    if (address && endpoint.starts_with("http://") && !IsLoopback(address->host)) {
      lines.push_back("cluster.etcd: " + endpoint +
                      " is not encrypted: who is on that network can change the cluster's map");
    }
  }
  if (cluster.lost_after < Seconds(60)) {
    lines.push_back("cluster.lost_after: " + FormatDuration(cluster.lost_after) +
                    " is shorter than many restarts take: each would cost a rebuild");
  }
}

}  // namespace cairn::kv
