// The rows of [cluster].
#include "kvstore/base/units.h"
#include "kvstore/config/field_rows.h"

namespace cairn::kv {
namespace {

using C = DaemonConfig;

void AddPlace(std::vector<ConfigField>& fields) {
  fields.push_back(Flag("cluster.enabled", "Be a node of a cluster.",
                        [](C& c) -> auto& { return c.cluster.enabled; }));
  fields.push_back(Text("cluster.name",
                        "Of the cluster, in small letters, digits and hyphens: its keys in etcd "
                        "begin with it.",
                        [](C& c) -> auto& { return c.cluster.name; }));
  fields.push_back(Text("cluster.node",
                        "Of this node: no other node of the cluster has it, and it stays when "
                        "the address changes.",
                        [](C& c) -> auto& { return c.cluster.node; }));
  fields.push_back(Text("cluster.rack",
                        "What fails with this node's neighbours: shards of one stripe are spread "
                        "over racks; empty: every node may fail alone.",
                        [](C& c) -> auto& { return c.cluster.rack; }));
  fields.push_back(Choice("cluster.transport", {"tcp", "rdma"},
                          "What nodes talk over, the same for all: rdma needs InfiniBand or RoCE, "
                          "reads and writes payload without the processor, and encrypts nothing.",
                          [](C& c) -> auto& { return c.cluster.transport; }));
  fields.push_back(Text("cluster.listen",
                        "Address for other nodes; over RDMA one for each port to use, with commas.",
                        [](C& c) -> auto& { return c.cluster.listen; }));
  fields.push_back(Text("cluster.advertise",
                        "Where other nodes reach this one, one address for each network, with "
                        "commas; empty: cluster.listen.",
                        [](C& c) -> auto& { return c.cluster.advertise; }));
  fields.push_back(Text("cluster.secret_file",
                        "The file whose first line all nodes of the cluster share: who does not "
                        "know it is no node. Needed beyond loopback.",
                        [](C& c) -> auto& { return c.cluster.secret_file; }));
}

void AddNodesTls(std::vector<ConfigField>& fields) {
  fields.push_back(Text("cluster.tls_cert_file",
                        "PEM file of this node's certificate for other nodes: with it all between "
                        "nodes is TLS 1.3, and both sides show one; all nodes have it, or none. "
                        "Empty: nothing is encrypted.",
                        [](C& c) -> auto& { return c.cluster.tls.cert_file; }));
  fields.push_back(Text("cluster.tls_key_file", "PEM file of its key.",
                        [](C& c) -> auto& { return c.cluster.tls.key_file; }));
  fields.push_back(Text("cluster.tls_ca_file",
                        "PEM file of who signs the nodes' certificates, and nobody else's: whoever "
                        "has one, and the secret, may be a node.",
                        [](C& c) -> auto& { return c.cluster.tls.ca_file; }));
}

void AddEtcd(std::vector<ConfigField>& fields) {
  fields.push_back(Text("cluster.etcd", "Addresses of etcd's members, with commas.",
                        [](C& c) -> auto& { return c.cluster.etcd; }));
  fields.push_back(Text("cluster.etcd_ca_file", "PEM file of who signs etcd's certificates.",
                        [](C& c) -> auto& { return c.cluster.etcd_tls.ca_file; }));
  fields.push_back(Text("cluster.etcd_cert_file",
                        "PEM file of this node's certificate for etcd.",
                        [](C& c) -> auto& { return c.cluster.etcd_tls.cert_file; }));
  fields.push_back(Text("cluster.etcd_key_file", "PEM file of its key.",
                        [](C& c) -> auto& { return c.cluster.etcd_tls.key_file; }));
}

void AddLimits(std::vector<ConfigField>& fields) {
  fields.push_back(Number("cluster.group_bits", FieldKind::kCount, 4, 16,
                          "The index has 2 to this power groups; fixed when the cluster is made.",
                          [](C& c) -> auto& { return c.cluster.group_bits; }));
  fields.push_back(Duration("cluster.lease", Seconds(3), Seconds(60),
                            "A node that etcd has not heard of for so long has lost its lease; "
                            "whole seconds.",
                            [](C& c) -> auto& { return c.cluster.lease; }));
  fields.push_back(Duration("cluster.suspect_after", Seconds(1), Seconds(3600),
                            "A node that is away for so long is suspect: nothing new is written "
                            "to it.",
                            [](C& c) -> auto& { return c.cluster.suspect_after; }));
  fields.push_back(Duration("cluster.lost_after", Seconds(1), Seconds(30 * 86'400),
                            "A node that is away for so long is lost: what it held is rebuilt "
                            "elsewhere. Longer than a restart takes.",
                            [](C& c) -> auto& { return c.cluster.lost_after; }));
  fields.push_back(Duration("cluster.slow_after", Seconds(1), Seconds(86'400),
                            "A target that most nodes find slow for so long holds no part of the "
                            "index until ten minutes after it was last slow.",
                            [](C& c) -> auto& { return c.cluster.slow_after; }));
  fields.push_back(Number("cluster.rebuild_bytes_per_second", FieldKind::kBytes, 0,
                          int64_t{1} * kTiB, "Of each node that rebuilds; 0: no limit.",
                          [](C& c) -> auto& { return c.cluster.rebuild_bytes_per_second; }));
  fields.push_back(Number("cluster.protocol_max", FieldKind::kCount, 0, 65'535,
                          "Speak at most this version of the messages between nodes, so that an "
                          "older program can come back; 0: all that this one speaks.",
                          [](C& c) -> auto& { return c.cluster.protocol_max; }));
  fields.push_back(Number("cluster.data_connections", FieldKind::kCount, 1, 64,
                          "Connections for payload to each other node.",
                          [](C& c) -> auto& { return c.cluster.data_connections; }));
}

}  // namespace

void AddCluster(std::vector<ConfigField>& fields) {
  AddPlace(fields);
  AddNodesTls(fields);
  AddEtcd(fields);
  AddLimits(fields);
}

}  // namespace cairn::kv
