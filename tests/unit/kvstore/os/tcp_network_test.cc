// What is TCP's own: connections, the hello, strangers and bad frames, on both engines. Calls as
// such are in tests/unit/kvstore/io/network_conformance_test.cc.
#include "kvstore/os/tcp_network.h"

#include <unistd.h>

#include <cerrno>
#include <functional>
#include <string>
#include <vector>

#include "kvstore/base/random.h"
#include "kvstore/os/socket_address.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/kvstore/os/os_fixture.h"

namespace cairn::kv {
namespace {

using testing::HasCode;
using testing::IsOk;
using Answered = Result<Network::Answer>;

constexpr NodeId kClient{1};
constexpr NodeId kServer{2};
constexpr char kSecret[] = "a secret of sixteen bytes and more";

class TcpNetworkTest : public OsTest {
 protected:
  void SetUp() override {
    OsTest::SetUp();
    release_ = std::make_unique<Event>(loop_);
    server_ = Create(Options(kServer, "127.0.0.1:0"));
    address_ = "127.0.0.1:" + std::to_string(server_->port());
    server_->Serve([this](NodeId source, Bytes body, Bytes payload) {
      return Echo(source, std::move(body), std::move(payload));
    });
    client_ = Create(Options(kClient, ""));
    ASSERT_THAT(client_->SetPeer(kServer, address_), IsOk());
  }
  void TearDown() override {
    release_->Set();
    poller_->Await(server_->Stop());
    poller_->Await(client_->Stop());
  }
  static TcpNetworkOptions Options(NodeId self, const std::string& listen) {
    return {.self = self, .listen = listen, .cluster = "test", .secret = kSecret};
  }
  std::unique_ptr<TcpNetwork> Create(const TcpNetworkOptions& options) {
    return TcpNetwork::Create(*poller_, *clock_, log_, options).value();
  }
  // A request that starts with 'h' is held back until the release.
  Task<Network::Reply> Echo(NodeId source, Bytes body, Bytes payload) {
    EXPECT_EQ(source, kClient);
    ++requests_;
    if (!body.empty() && body.data()[0] == 'h') {
      Event& release = *release_;
      co_await release;
    }
    co_return Network::Reply(std::move(body), std::move(payload));
  }
  Task<Answered> Start(TcpNetwork& client, std::string_view text, Nanos budget = Seconds(60)) {
    return client.Call(kServer, Network::Outgoing(Bytes::CopyOf(AsBytes(text))), MutableByteSpan(),
                       clock_->Now() + budget);
  }
  Task<Answered> StartPayload(const Bytes& payload, MutableByteSpan into) {
    return client_->Call(kServer, Network::Outgoing(Bytes(1), {payload.span()}), into,
                         clock_->Now() + Seconds(60));
  }
  // A client of its own with these options calls once.
  Answered CallAs(const std::function<void(TcpNetworkOptions&)>& change) {
    TcpNetworkOptions options = Options(kClient, "");
    change(options);
    const std::unique_ptr<TcpNetwork> stranger = Create(options);
    EXPECT_THAT(stranger->SetPeer(kServer, address_), IsOk());
    Answered answer = poller_->Await(Start(*stranger, "x"));
    poller_->Await(stranger->Stop());
    return answer;
  }

  // A plain socket to the server.
  int Connect() {
    SocketAddress address = SocketAddress::Parse(address_).value();
    const int fd = address.NewSocket().value();
    EXPECT_EQ(connect(fd, &address.address(), address.size()), 0);
    return fd;
  }
  void Write(int fd, ByteSpan bytes) {
    EXPECT_EQ(write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  // What a node says that knows the secret.
  void SayHello(int fd, ConnectionRole role) {
    HelloOffer offer{.versions = {}, .role = role, .caller = kClient, .callee = kServer,
                     .cluster = Sha256(AsBytes("test")), .nonce = {}};
    const OfferBytes offered = EncodeOffer(offer);
    Write(fd, offered);
    WelcomeBytes welcome{};
    size_t got = 0;
    poller_->RunUntil([&] {
      const ssize_t some = recv(fd, &welcome[got], welcome.size() - got, MSG_DONTWAIT);
      if (some > 0) got += static_cast<size_t>(some);
      return got == welcome.size();
    });
    Write(fd, CallerProof(kSecret, offered, welcome));
  }
  // The server closes the connection.
  void ExpectHangUp(int fd) {
    uint8_t byte = 0;
    poller_->RunUntil([&] {
      const ssize_t got = recv(fd, &byte, 1, MSG_DONTWAIT);
      return got == 0 || (got < 0 && errno != EAGAIN);
    });
    close(fd);
  }
  void ExpectHangUpAfterHello(ByteSpan bytes) {
    const uint64_t before = server_->stats().malformed_frames;
    const int fd = Connect();
    SayHello(fd, ConnectionRole::kControl);
    Write(fd, bytes);
    poller_->RunUntil([&] { return server_->stats().malformed_frames > before; });
    ExpectHangUp(fd);
  }

  std::unique_ptr<Event> release_;
  std::unique_ptr<TcpNetwork> server_;
  std::unique_ptr<TcpNetwork> client_;
  std::string address_;
  int requests_ = 0;
};
KV_ON_BOTH_ENGINES(TcpNetworkTest);

TEST_P(TcpNetworkTest, SmallCallsShareAConnectionAndPayloadHasItsOwn) {
  for (int i = 0; i < 3; ++i) EXPECT_THAT(poller_->Await(Start(*client_, "x")), IsOk());
  EXPECT_EQ(client_->stats().connections, 1u);
  const Bytes sent(100'000);
  Bytes into(sent.size());
  EXPECT_THAT(poller_->Await(StartPayload(sent, into.span())), IsOk());
  EXPECT_EQ(client_->stats().connections, 2u);
  std::vector<Task<Answered>> calls;
  for (int i = 0; i < 8; ++i) calls.push_back(StartPayload(sent, into.span()));
  for (Task<Answered>& call : calls) EXPECT_THAT(poller_->Await(std::move(call)), IsOk());
  EXPECT_EQ(client_->stats().connections, 3u);  // data_connections is 2.
}

TEST_P(TcpNetworkTest, ASmallCallOvertakesBlocksOnTheirWay) {
  const Bytes sent(kMessagePayloadSizeMax);
  Bytes into(sent.size());
  EXPECT_THAT(poller_->Await(Start(*client_, "x")), IsOk());
  Task<Answered> large = StartPayload(sent, into.span());
  EXPECT_THAT(poller_->Await(Start(*client_, "small")), IsOk());
  EXPECT_FALSE(large.done());
  EXPECT_THAT(poller_->Await(std::move(large)), IsOk());
}

TEST_P(TcpNetworkTest, MoreBytesThanMayBeOnTheirWayAreRefusedAtOnce) {
  const Bytes sent(kMessagePayloadSizeMax);
  std::vector<Task<Answered>> calls;
  for (int i = 0; i < 3; ++i) calls.push_back(StartPayload(sent, {}));  // 216 of 256 MiB.
  const Task<Answered> refused = StartPayload(sent, {});
  ASSERT_TRUE(refused.done());
  EXPECT_EQ(client_->stats().calls_overloaded, 1u);
  for (Task<Answered>& call : calls) {
    // The answer is larger than its place.
    EXPECT_THAT(poller_->Await(std::move(call)), HasCode(Code::kUnavailable));
  }
}

TEST_P(TcpNetworkTest, OnlyWhoKnowsTheSecretGetsIn) {
  EXPECT_THAT(CallAs([](auto&) {}), IsOk());
  const auto forget = [](TcpNetworkOptions& options) { options.secret = "guessed: 1234567"; };
  EXPECT_THAT(CallAs(forget), HasCode(Code::kUnavailable));
  EXPECT_THAT(CallAs([](auto& options) { options.secret.clear(); }), HasCode(Code::kUnavailable));
  EXPECT_EQ(requests_, 1);
  // The caller finds out first, and does not send a proof that would help a false node.
  EXPECT_TRUE(log_.Has("no connection with node 2: it does not know the secret"));
}

TEST_P(TcpNetworkTest, AProofThatIsWrongIsCountedToldOnceAndCloses) {
  for (int i = 0; i < 2; ++i) {
    const int fd = Connect();
    const HelloOffer offer{.versions = {}, .role = ConnectionRole::kControl, .caller = NodeId{66},
                           .callee = kServer, .cluster = Sha256(AsBytes("test")), .nonce = {}};
    Write(fd, EncodeOffer(offer));
    Write(fd, Sha256Digest{});
    poller_->RunUntil([&] { return server_->stats().hellos_unproven == i + 1u; });
    poller_->RunUntil([&] { return server_->stats().connections == 0; });
    close(fd);
  }
  EXPECT_EQ(log_.Count("no connection with node 66"), 1u);
}

TEST_P(TcpNetworkTest, AnotherClusterNodeOrVersionIsRefused) {
  EXPECT_THAT(CallAs([](auto& options) { options.cluster = "other"; }),
              HasCode(Code::kUnavailable));
  EXPECT_TRUE(log_.Has("it belongs to another cluster"));
  EXPECT_THAT(CallAs([](auto& options) { options.versions = {.min = 7, .max = 9}; }),
              HasCode(Code::kUnavailable));
  EXPECT_TRUE(log_.Has("it speaks no version"));
  EXPECT_THAT(CallAs([](auto& options) { options.versions = {.min = 1, .max = 3}; }), IsOk());
  ASSERT_THAT(client_->SetPeer(NodeId{5}, address_), IsOk());
  const Answered answer =
      poller_->Await(client_->Call(NodeId{5}, Network::Outgoing(Bytes(1)), MutableByteSpan(),
                                   clock_->Now() + Seconds(60)));
  EXPECT_THAT(answer, HasCode(Code::kUnavailable));
  EXPECT_TRUE(log_.Has("another node answers at that address"));
  EXPECT_GE(server_->stats().hellos_refused, 3u);
}

TEST_P(TcpNetworkTest, WithoutASecretOnlyTheLoopbackIsUsed) {
  TcpNetworkOptions options{.self = NodeId{3}, .listen = "0.0.0.0:0"};
  EXPECT_THAT(TcpNetwork::Create(*poller_, *clock_, log_, options), HasCode(Code::kInvalid));
  options.listen = "";
  const std::unique_ptr<TcpNetwork> open = Create(options);
  EXPECT_THAT(open->SetPeer(kServer, "192.0.2.1:7400"), HasCode(Code::kInvalid));
  EXPECT_THAT(open->SetPeer(kServer, "127.0.0.2:7400"), IsOk());
  EXPECT_THAT(open->SetPeer(kServer, "no port"), HasCode(Code::kInvalid));
  poller_->Await(open->Stop());
  options.secret = "short";
  EXPECT_THAT(TcpNetwork::Create(*poller_, *clock_, log_, options), HasCode(Code::kInvalid));
}

TEST_P(TcpNetworkTest, AnAddressInUseIsAConflict) {
  EXPECT_THAT(TcpNetwork::Create(*poller_, *clock_, log_, Options(NodeId{3}, address_)),
              HasCode(Code::kConflict));
}

TEST_P(TcpNetworkTest, AfterAFailedConnectCallsFailAtOnceForAWhile) {
  const std::string nobody = "127.0.0.1:1";
  ASSERT_THAT(client_->SetPeer(kServer, nobody), IsOk());
  EXPECT_THAT(poller_->Await(Start(*client_, "x")), HasCode(Code::kUnavailable));
  Task<Answered> again = Start(*client_, "x");
  ASSERT_TRUE(again.done());
  EXPECT_THAT(again.Take(), HasCode(Code::kUnavailable));
  // A new address is tried at once.
  ASSERT_THAT(client_->SetPeer(kServer, address_), IsOk());
  EXPECT_THAT(poller_->Await(Start(*client_, "x")), IsOk());
}

// A listener that accepts nobody: the hello never comes.
TEST_P(TcpNetworkTest, APeerThatSaysNothingIsGivenUp) {
  const SocketAddress silent = SocketAddress::Parse("127.0.0.1:0").value();
  const int listener = silent.Listen().value();
  TcpNetworkOptions options = Options(kClient, "");
  options.connect_timeout = Millis(30);
  const std::unique_ptr<TcpNetwork> caller = Create(options);
  const uint16_t port = SocketAddress::PortOf(listener);
  ASSERT_THAT(caller->SetPeer(kServer, "127.0.0.1:" + std::to_string(port)), IsOk());
  EXPECT_THAT(poller_->Await(Start(*caller, "x")), HasCode(Code::kUnavailable));
  poller_->Await(caller->Stop());
  close(listener);
}

// The queue of the listener is full: connects hang, as they do when a machine is gone.
TEST_P(TcpNetworkTest, AConnectThatHangsIsGivenUp) {
  SocketAddress full = SocketAddress::Parse("127.0.0.1:0").value();
  const int listener = full.NewSocket().value();
  ASSERT_EQ(bind(listener, &full.address(), full.size()), 0);
  ASSERT_EQ(listen(listener, 0), 0);
  const std::string text = "127.0.0.1:" + std::to_string(SocketAddress::PortOf(listener));
  SocketAddress there = SocketAddress::Parse(text).value();
  std::vector<int> fillers;
  for (int i = 0; i < 4; ++i) {
    fillers.push_back(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    (void)connect(fillers.back(), &there.address(), there.size());
  }
  TcpNetworkOptions options = Options(kClient, "");
  options.connect_timeout = Millis(30);
  const std::unique_ptr<TcpNetwork> caller = Create(options);
  ASSERT_THAT(caller->SetPeer(kServer, text), IsOk());
  EXPECT_THAT(poller_->Await(Start(*caller, "x")), HasCode(Code::kUnavailable));
  poller_->Await(caller->Stop());
  for (const int fd : fillers) close(fd);
  close(listener);
}

TEST_P(TcpNetworkTest, AStrangerThatSaysNothingIsCutOff) {
  TcpNetworkOptions options = Options(NodeId{3}, "127.0.0.1:0");
  options.connect_timeout = Millis(30);
  const std::unique_ptr<TcpNetwork> strict = Create(options);
  address_ = "127.0.0.1:" + std::to_string(strict->port());
  ExpectHangUp(Connect());
  poller_->RunUntil([&] { return strict->stats().connections == 0; });
  poller_->Await(strict->Stop());
}

TEST_P(TcpNetworkTest, AnAnswerOnItsWayToADeafPeerIsCutOff) {
  poller_->Await(server_->Stop());
  TcpNetworkOptions options = Options(kServer, "127.0.0.1:0");
  options.stall_timeout = Millis(40);
  server_ = Create(options);
  address_ = "127.0.0.1:" + std::to_string(server_->port());
  server_->Serve([this](NodeId source, Bytes, Bytes) {
    return Echo(source, Bytes(), Bytes(kMessagePayloadSizeMax));
  });
  const int fd = Connect();
  SayHello(fd, ConnectionRole::kData);
  const FrameHeader header{.room = static_cast<uint32_t>(kMessagePayloadSizeMax)};
  Write(fd, EncodeFrame(header, {}));
  poller_->RunUntil([&] { return server_->stats().connections_cut == 1; });
  poller_->RunUntil([&] { return server_->stats().connections == 0; });
  close(fd);
}

TEST_P(TcpNetworkTest, MalformedFramesCostTheirSenderTheConnection) {
  ExpectHangUp([&] {
    const int fd = Connect();
    Write(fd, std::vector<uint8_t>(kOfferSize, 'G'));
    return fd;
  }());
  const FrameHeader header;
  std::vector<uint8_t> wrong = EncodeFrame(header, {});
  wrong[0] ^= 1;
  ExpectHangUpAfterHello(wrong);
  wrong = EncodeFrame(header, AsBytes("body"));
  wrong.back() ^= 1;  // The checksum notices.
  ExpectHangUpAfterHello(wrong);
  const FrameHeader answer{.kind = FrameKind::kAnswer};  // To a question that nobody asked.
  ExpectHangUpAfterHello(EncodeFrame(answer, {}));
  const FrameHeader payload{.payload_size = 1};  // On the connection for small calls.
  ExpectHangUpAfterHello(EncodeFrame(payload, {}));
  EXPECT_EQ(server_->stats().malformed_frames, 5u);
  EXPECT_EQ(requests_, 0);
  EXPECT_THAT(poller_->Await(Start(*client_, "still served")), IsOk());
}

TEST_P(TcpNetworkTest, AHalfSentFrameIsForgottenWithItsSender) {
  const int fd = Connect();
  SayHello(fd, ConnectionRole::kData);
  const FrameHeader header{.payload_size = 1000};
  Write(fd, EncodeFrame(header, {}));
  poller_->RunUntil([this] { return server_->stats().connections == 1; });
  close(fd);
  poller_->RunUntil([this] { return server_->stats().connections == 0; });
  EXPECT_EQ(requests_, 0);
  EXPECT_EQ(server_->stats().malformed_frames, 0u);
}

}  // namespace
}  // namespace cairn::kv
