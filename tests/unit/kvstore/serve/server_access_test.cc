// Who may come in, and who may administer.
#include <gtest/gtest.h>

#include "tests/unit/kvstore/serve/raw_client.h"

namespace cairn::kv {
namespace {

using ::testing::HasSubstr;
using testing::HasCode;
using testing::IsOk;
using wire::Verb;

// Answers with what it was told, and notes what it was asked.
class NotedCluster final : public ClusterAdmin {
 public:
  Task<Result<ClusterInfo>> DescribeCluster() override { co_return info; }
  Task<Status> DrainNode(std::string node, Draining wanted) override {
    asked.push_back((wanted == Draining::kYes ? "drain " : "undo ") + node);
    co_return Status(Code::kNotFound, "no such node");
  }
  Task<Status> DrainTarget(TargetId target, Draining wanted) override {
    asked.push_back((wanted == Draining::kYes ? "drain " : "undo ") +
                    std::to_string(target.value));
    co_return Status();
  }

  ClusterInfo info;
  std::vector<std::string> asked;
};

class ServerAccess : public ::testing::Test {
 protected:
  ServedStore served_;
};

TEST_F(ServerAccess, AdministrationIsForTheUnixSocketAndForTheToken) {
  served_.options().admin_token = "letmein";
  served_.StartServer();
  RawClient tcp(served_, served_.TcpAddress());
  tcp.Hello();
  EXPECT_THAT(tcp.Call<StoreStats>(Verb::kStats, wire::Empty()), HasCode(Code::kInvalid));
  RemoteStore& named = served_.Connect({.address = served_.TcpAddress(),
                                        .admin_token = "letmein"});
  // The fixture has no administration: that much is said only to who may ask.
  EXPECT_THAT(served_.Await(named.Stats()), HasCode(Code::kInvalid));
}

TEST_F(ServerAccess, AStoreThatStandsAloneSaysThatItIsNoCluster) {
  served_.StartServer();
  RemoteStore& client = served_.ConnectUnix();
  const auto seen = served_.Await(client.DescribeCluster());
  EXPECT_THAT(seen, HasCode(Code::kInvalid));
  EXPECT_THAT(seen.status().message(), HasSubstr("not part of a cluster"));
  EXPECT_THAT(served_.Await(client.DrainNode("node-1", Draining::kYes)), HasCode(Code::kInvalid));
  EXPECT_THAT(served_.Await(client.DrainTarget({5}, Draining::kNo)), HasCode(Code::kInvalid));
}

TEST_F(ServerAccess, TheClusterIsSeenAndSteeredByAdministratorsOnly) {
  NotedCluster cluster;
  cluster.info.name = "cairn";
  cluster.info.nodes.push_back({.id = {3}, .name = "node-2", .rack = ""});
  served_.cluster = &cluster;
  served_.StartServer();
  RawClient tcp(served_, served_.TcpAddress());
  tcp.Hello();
  EXPECT_THAT(tcp.Call<ClusterInfo>(Verb::kDescribeCluster, wire::Empty()),
              HasCode(Code::kInvalid));
  const wire::DrainTargetRequest drain{.target = {5}, .wanted = Draining::kYes};
  EXPECT_THAT(tcp.Call<wire::Empty>(Verb::kDrainTarget, drain), HasCode(Code::kInvalid));
  EXPECT_TRUE(cluster.asked.empty());
  RemoteStore& client = served_.ConnectUnix();
  const auto seen = served_.Await(client.DescribeCluster());
  ASSERT_THAT(seen, IsOk());
  EXPECT_EQ(seen.value().nodes, cluster.info.nodes);
  EXPECT_THAT(served_.Await(client.DrainNode("node-9", Draining::kYes)),
              HasCode(Code::kNotFound));
  EXPECT_THAT(served_.Await(client.DrainTarget({5}, Draining::kNo)), IsOk());
  EXPECT_THAT(cluster.asked, ::testing::ElementsAre("drain node-9", "undo 5"));
}

TEST_F(ServerAccess, WithTlsOnlyThoseWhoShowAGoodCertificateComeIn) {
  served_.UseTls();
  served_.StartServer();
  const RemoteParts parts{.poller = served_.poller(),
                          .clock = served_.clock(),
                          .log = served_.log()};
  const auto refusal = [&](RemoteOptions options) {
    const auto connected = served_.Await(RemoteStore::Connect(parts, std::move(options)));
    EXPECT_FALSE(connected.ok());
    return connected.status().ToString();
  };
  const std::string address = served_.TcpAddress();
  EXPECT_THAT(refusal({.address = address}), HasSubstr("expect TLS, as tls:HOST:PORT"));
  EXPECT_THAT(refusal({.address = "tls:" + address}), HasSubstr("certificate is refused"));
  EXPECT_THAT(refusal({.address = "tls:" + address,
                       .tls = {.ca_file = served_.ca_file()}}),
              HasSubstr("certificate required"));
  EXPECT_THAT(refusal({.address = "tls:" + address, .tls = {.ca_file = "/absent.pem"}}),
              HasSubstr("/absent.pem"));
  EXPECT_EQ(served_.stats().handshakes_refused, 3u);
  EXPECT_EQ(served_.stats().sessions_opened, 0u);
  served_.ConnectTcp();
  EXPECT_EQ(served_.stats().sessions_opened, 1u);
}

}  // namespace
}  // namespace cairn::kv
