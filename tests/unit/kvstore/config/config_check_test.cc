// Relations between settings: each broken alone, and the message that says what to do.
#include "kvstore/config/config_check.h"

#include <gmock/gmock.h>

#include <functional>

namespace cairn::kv {
namespace {

using testing::HasSubstr;

TEST(CheckConfig, TheDefaultsAreSound) {
  EXPECT_TRUE(CheckConfig(DaemonConfig(), {.memory_bytes = 8 * kGiB}).ok());
  EXPECT_THAT(ConfigWarnings(DaemonConfig()), testing::IsEmpty());
}

struct Broken {
  const char* message;
  std::function<void(DaemonConfig&)> breaks;
};

std::vector<Broken> Table() {
  return {
      {"store.data_dir: is empty", [](DaemonConfig& c) { c.node.data_dir = ""; }},
      {"store.target_size:", [](DaemonConfig& c) { c.node.target_bytes += 1; }},
      {"name a shorter path", [](DaemonConfig& c) { c.node.data_dir = std::string(120, '/'); }},
      {"nobody could come in", [](DaemonConfig& c) { c.listen.unix_socket = ""; }},
      {"listen.tcp: '7411' is no address", [](DaemonConfig& c) { c.listen.tcp = "7411"; }},
      {"is no address", [](DaemonConfig& c) { c.listen.tcp = "127.0.0.1:"; }},
      {"is no address", [](DaemonConfig& c) { c.listen.tcp = "127.0.0.1:65536"; }},
      {"is no address", [](DaemonConfig& c) { c.listen.tcp = "127.0.0.1:x"; }},
      {"is no address", [](DaemonConfig& c) { c.listen.tcp = ":1"; }},
      {"tcp_beyond_loopback = true", [](DaemonConfig& c) { c.listen.tcp = "0.0.0.0:7411"; }},
      {"tcp_beyond_loopback = true", [](DaemonConfig& c) { c.listen.tcp = "[::]:7411"; }},
      {"set both or none",
       [](DaemonConfig& c) {
         c.listen.tcp = "127.0.0.1:7411";
         c.listen.tcp_tls.cert_file = "cert.pem";
       }},
      {"listen.tls_cert_file: goes with listen.tls_key_file",
       [](DaemonConfig& c) {
         c.listen.tcp = "127.0.0.1:7411";
         c.listen.tcp_tls.key_file = "key.pem";
       }},
      {"listen.tls_client_ca_file:", [](DaemonConfig& c) { c.listen.tcp_tls.ca_file = "ca.pem"; }},
      {"is for listen.tcp, which is empty",
       [](DaemonConfig& c) {
         c.listen.tcp_tls = {.cert_file = "cert.pem", .key_file = "key.pem"};
       }},
      {"metrics_beyond_loopback = true",
       [](DaemonConfig& c) { c.listen.metrics = "0.0.0.0:9511"; }},
      {"listen.metrics: 'localhost' is no address",
       [](DaemonConfig& c) { c.listen.metrics = "localhost"; }},
      {"same address", [](DaemonConfig& c) { c.listen.tcp = c.listen.metrics; }},
      {"memory.rebuild_buffer:",
       [](DaemonConfig& c) { c.node.node.store.reader.rebuild_bytes_max = kMiB; }},
      {"sessions.bytes_max:", [](DaemonConfig& c) { c.server.session_bytes_max = kGiB; }},
      {"listen.admin_token_file:",
       [](DaemonConfig& c) { c.listen.admin_token_file = "/etc/cairn/token"; }},
      {"keep them below 80 %",
       [](DaemonConfig& c) { c.node.node.home.index_cache_bytes = 7 * kGiB; }},
      {"keep them below 80 %",
       [](DaemonConfig& c) {
         c.node.node.store.admission.policy = AdmissionPolicy::kSecondSight;
         c.node.node.store.admission.sightings_max = 1 << 30;
         c.node.node.home.index_cache_bytes = 3 * kGiB;
       }},
      {"upkeep.checkpoint_interval:",
       [](DaemonConfig& c) { c.node.node.checkpoint_interval = Millis(100); }},
      {"upkeep.orphan_age:", [](DaemonConfig& c) { c.node.node.orphan_age = Seconds(2); }},
  };
}

TEST(CheckConfig, EachRelationIsChecked) {
  for (const Broken& broken : Table()) {
    DaemonConfig config;
    broken.breaks(config);
    const Status status = CheckConfig(config, {.memory_bytes = 8 * kGiB});
    EXPECT_EQ(status.code(), Code::kInvalid) << broken.message;
    EXPECT_THAT(status.message(), HasSubstr(broken.message));
  }
}

// A sound node of a cluster that other machines can reach.
DaemonConfig Clustered() {
  DaemonConfig config;
  ClusterConfig& cluster = config.cluster;
  cluster.enabled = true;
  cluster.node = "node-3";
  cluster.rack = "rack-1";
  cluster.listen = "0.0.0.0:7412";
  cluster.advertise = "10.0.0.3:7412, node-3.fast.example:7412";
  cluster.secret_file = "/etc/cairn/cluster.secret";
  cluster.tls.cert_file = "peer.pem";
  cluster.tls.key_file = "peer.key";
  cluster.tls.ca_file = "peers.pem";
  cluster.etcd = "https://10.0.0.7:2379,https://[fd00::7]:2379";
  cluster.etcd_tls.ca_file = "ca.pem";
  cluster.etcd_tls.cert_file = "node.pem";
  cluster.etcd_tls.key_file = "node.key";
  return config;
}

std::vector<Broken> ClusterTable() {
  return {
      {"cluster.name: '' is no name", [](DaemonConfig& c) { c.cluster.name = ""; }},
      {"cluster.node: 'Node 3' is no name", [](DaemonConfig& c) { c.cluster.node = "Node 3"; }},
      {"cluster.node: '", [](DaemonConfig& c) { c.cluster.node = std::string(64, 'n'); }},
      {"cluster.rack: 'a/b' is no name", [](DaemonConfig& c) { c.cluster.rack = "a/b"; }},
      {"cluster.listen: '7412' is no address", [](DaemonConfig& c) { c.cluster.listen = "7412"; }},
      {"cluster.secret_file: is empty", [](DaemonConfig& c) { c.cluster.secret_file = ""; }},
      {"cluster.advertise: is empty", [](DaemonConfig& c) { c.cluster.advertise = ""; }},
      {"cluster.advertise: '10.0.0.3' cannot",
       [](DaemonConfig& c) { c.cluster.advertise = "10.0.0.3"; }},
      {"cluster.advertise: '10.0.0.3:0' cannot",
       [](DaemonConfig& c) { c.cluster.advertise = "10.0.0.3:0"; }},
      {"cluster.advertise: '[::]:7412' cannot",
       [](DaemonConfig& c) { c.cluster.advertise = "10.0.0.3:7412,[::]:7412"; }},
      {"cluster.listen: is the same address as listen.tcp",
       [](DaemonConfig& c) {
         c.listen.tcp = c.cluster.listen;
         c.listen.tcp_beyond_loopback = true;
       }},
      {"cluster.etcd: is empty", [](DaemonConfig& c) { c.cluster.etcd = ""; }},
      {"cluster.etcd: '10.0.0.7:2379' is no address",
       [](DaemonConfig& c) { c.cluster.etcd = "10.0.0.7:2379"; }},
      {"cluster.etcd: 'https://10.0.0.7' is no address",
       [](DaemonConfig& c) { c.cluster.etcd = "https://10.0.0.7"; }},
      {"'http://10.0.0.8:2379' is not encrypted, and others are",
       [](DaemonConfig& c) { c.cluster.etcd = "https://10.0.0.7:2379,http://10.0.0.8:2379"; }},
      {"cluster.etcd_cert_file: goes with",
       [](DaemonConfig& c) { c.cluster.etcd_tls.key_file = ""; }},
      {"cluster.tls_cert_file: goes with cluster.tls_key_file and cluster.tls_ca_file",
       [](DaemonConfig& c) { c.cluster.tls.key_file = ""; }},
      {"set all three or none", [](DaemonConfig& c) { c.cluster.tls.ca_file = ""; }},
      {"set all three or none",
       [](DaemonConfig& c) { c.cluster.tls.cert_file = c.cluster.tls.key_file = ""; }},
      {"certificates are set, and no address begins with https://",
       [](DaemonConfig& c) { c.cluster.etcd = "http://127.0.0.1:2379"; }},
      {"write whole seconds", [](DaemonConfig& c) { c.cluster.lease = Millis(2500); }},
      {"cluster.suspect_after: 5 s is shorter than cluster.lease (6 s)",
       [](DaemonConfig& c) { c.cluster.lease = Seconds(6); }},
      {"cluster.lost_after: 5 s is not longer",
       [](DaemonConfig& c) { c.cluster.lost_after = c.cluster.suspect_after; }},
  };
}

TEST(CheckConfig, EachRelationOfAClusterIsChecked) {
  EXPECT_TRUE(CheckConfig(Clustered()).ok()) << CheckConfig(Clustered()).message();
  for (const Broken& broken : ClusterTable()) {
    DaemonConfig config = Clustered();
    broken.breaks(config);
    EXPECT_THAT(CheckConfig(config).message(), HasSubstr(broken.message));
    config.cluster.enabled = false;
    EXPECT_TRUE(CheckConfig(config).ok()) << broken.message;
  }
}

DaemonConfig OverRdma() {
  DaemonConfig config = Clustered();
  config.cluster.transport = ClusterTransport::kRdma;
  config.cluster.listen = "10.0.0.3:7412, 10.1.0.3:7412";
  config.cluster.advertise = "";
  config.cluster.tls = {};
  return config;
}

TEST(CheckConfig, WhatRdmaBetweenNodesNeeds) {
  EXPECT_TRUE(CheckConfig(OverRdma()).ok()) << CheckConfig(OverRdma()).message();
  const std::vector<Broken> table = {
      {"addresses, and over TCP a node has one",
       [](DaemonConfig& c) { c.cluster.transport = ClusterTransport::kTcp; }},
      {"cluster.listen: '' is no address", [](DaemonConfig& c) { c.cluster.listen = ""; }},
      {"cluster.listen: '7412' is no address",
       [](DaemonConfig& c) { c.cluster.listen = "10.0.0.3:7412,7412"; }},
      {"127.0.0.1 is the address of no RDMA port",
       [](DaemonConfig& c) { c.cluster.listen = "10.0.0.3:7412,127.0.0.1:7412"; }},
      {"0.0.0.0 is the address of no RDMA port",
       [](DaemonConfig& c) { c.cluster.listen = "0.0.0.0:7412"; }},
      {"names no port", [](DaemonConfig& c) { c.cluster.listen = "10.0.0.3:0"; }},
      {"cluster.secret_file: is empty", [](DaemonConfig& c) { c.cluster.secret_file = ""; }},
      {"RDMA encrypts nothing", [](DaemonConfig& c) { c.cluster.tls.ca_file = "ca.pem"; }},
  };
  for (const Broken& broken : table) {
    DaemonConfig config = OverRdma();
    broken.breaks(config);
    EXPECT_THAT(CheckConfig(config).message(), HasSubstr(broken.message));
  }
}

TEST(CheckConfig, OnLoopbackAClusterNeedsOnlyTheNodesName) {
  DaemonConfig config;
  config.cluster.enabled = true;
  config.cluster.node = "a";
  EXPECT_TRUE(CheckConfig(config).ok()) << CheckConfig(config).message();
}

TEST(CheckConfig, SaysAllAtOnce) {
  DaemonConfig config;
  config.node.target_bytes += 1;
  config.node.node.orphan_age = Seconds(2);
  const Status status = CheckConfig(config);
  EXPECT_THAT(status.message(), HasSubstr("store.target_size"));
  EXPECT_THAT(status.message(), HasSubstr("\nupkeep.orphan_age"));
}

TEST(CheckConfig, AllowsWhatIsMeant) {
  DaemonConfig config;
  config.listen.tcp = "0.0.0.0:7411";
  config.listen.tcp_beyond_loopback = true;
  config.listen.metrics = "[::1]:9511";
  EXPECT_TRUE(CheckConfig(config).ok());
  config.listen.metrics = "0.0.0.0:9511";
  config.listen.metrics_beyond_loopback = true;
  EXPECT_TRUE(CheckConfig(config).ok());
  config.listen.metrics = "";
  config.listen.unix_socket = "";
  EXPECT_TRUE(CheckConfig(config).ok());
}

TEST(ConfigWarnings, FewTargets) {
  DaemonConfig config;
  config.node.targets = 2;
  config.node.node.reclaim.move_percent_max = 0;
  EXPECT_THAT(ConfigWarnings(config),
              testing::ElementsAre(HasSubstr("10+2"), HasSubstr("3 copies"), HasSubstr("evicts")));
}

TEST(ConfigWarnings, FewTargetsOfANodeOfManyAreFine) {
  DaemonConfig config;
  config.node.targets = 1;
  config.cluster.enabled = true;
  EXPECT_THAT(ConfigWarnings(config), testing::IsEmpty());
}

TEST(ConfigWarnings, AClusterThatIsSeldomMeant) {
  DaemonConfig config = Clustered();
  EXPECT_THAT(ConfigWarnings(config), testing::IsEmpty());
  config.cluster.etcd = "http://10.0.0.7:2379, http://127.0.0.1:2379";
  config.cluster.lost_after = Seconds(20);
  EXPECT_THAT(ConfigWarnings(config),
              testing::ElementsAre(HasSubstr("http://10.0.0.7:2379 is not encrypted"),
                                   HasSubstr("each would cost a rebuild")));
}

TEST(ConfigWarnings, AWriteBudgetBeyondWhatTheDrivesAreRatedFor) {
  DaemonConfig config;
  config.drive_writes_per_day = 0.3;
  EXPECT_THAT(ConfigWarnings(config), testing::IsEmpty());
  config.node.node.store.admission.policy = AdmissionPolicy::kWriteBudget;
  EXPECT_THAT(ConfigWarnings(config),
              testing::ElementsAre(HasSubstr("admission.drive_writes_per_day")));
  config.node.node.store.admission.drive_writes_per_day = 0.3;
  EXPECT_THAT(ConfigWarnings(config), testing::IsEmpty());
}

}  // namespace
}  // namespace cairn::kv
