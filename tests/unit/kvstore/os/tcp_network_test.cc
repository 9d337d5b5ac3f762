// Calls over loopback on both engines: answers in any order, deadlines, disconnects, bad frames.
#include "kvstore/os/tcp_network.h"

#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "kvstore/base/random.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/kvstore/os/os_fixture.h"

namespace cairn::kv {
namespace {

using testing::HasCode;
using testing::IsOk;

constexpr NodeId kClient{1};
constexpr NodeId kServer{2};

class TcpNetworkTest : public OsTest {
 protected:
  void SetUp() override {
    OsTest::SetUp();
    release_ = std::make_unique<Event>(loop_);
    StartServer("127.0.0.1:0");
    Result<std::unique_ptr<TcpNetwork>> client = Create({.self = kClient, .listen = ""});
    ASSERT_THAT(client, IsOk());
    client_ = std::move(client).value();
    ASSERT_THAT(client_->SetPeer(kServer, address_), IsOk());
  }
  void TearDown() override {
    release_->Set();
    StopServer();
    poller_->Await(client_->Stop());
  }
  Result<std::unique_ptr<TcpNetwork>> Create(const TcpNetworkOptions& options) {
    return TcpNetwork::Create(*poller_, *clock_, log_, options);
  }
  void StartServer(const std::string& listen) {
    Result<std::unique_ptr<TcpNetwork>> server = Create({.self = kServer, .listen = listen});
    ASSERT_THAT(server, IsOk());
    server_ = std::move(server).value();
    address_ = "127.0.0.1:" + std::to_string(server_->port());
    server_->Serve([this](NodeId source, Bytes request) {
      return Echo(source, std::move(request));
    });
  }
  void StopServer() {
    if (server_ == nullptr) return;
    poller_->Await(server_->Stop());
    server_.reset();
  }
  // A request that starts with 'h' is held back until the release.
  Task<Bytes> Echo(NodeId source, Bytes request) {
    EXPECT_EQ(source, kClient);
    ++requests_;
    if (!request.empty() && request.data()[0] == 'h') {
      Event& release = *release_;
      co_await release;
    }
    co_return request;
  }
  Task<Result<Bytes>> Start(std::string_view text) {
    return client_->Call(kServer, Bytes::CopyOf(AsBytes(text)), clock_->Now() + Seconds(60));
  }
  // A plain socket to the server, and whether the server hung up on it after `bytes`.
  bool HangsUpAfter(ByteSpan bytes) {
    SocketAddress address = SocketAddress::Parse(address_).value();
    const int fd = address.NewSocket().value();
    EXPECT_EQ(connect(fd, &address.address(), address.size()), 0);
    EXPECT_EQ(write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    const uint64_t before = server_->malformed_frames();
    poller_->RunUntil([&] { return server_->malformed_frames() > before; });
    uint8_t byte = 0;
    poller_->RunUntil([&] { return recv(fd, &byte, 1, MSG_DONTWAIT) >= 0 || errno != EAGAIN; });
    close(fd);
    return true;
  }

  std::unique_ptr<Event> release_;
  std::unique_ptr<TcpNetwork> server_;
  std::unique_ptr<TcpNetwork> client_;
  std::string address_;
  int requests_ = 0;
};
KV_ON_BOTH_ENGINES(TcpNetworkTest);

TEST_P(TcpNetworkTest, EchoesEverySizeOfMessage) {
  Random random(1);
  for (const size_t size : {0u, 1u, 23u, 24u, 25u, 4096u, 65535u, 65536u, 65537u, 3u << 20}) {
    Bytes request(size);
    random.Fill(request.span());
    if (size > 0) request.data()[0] = 'x';
    const Bytes sent = Bytes::CopyOf(request.span());
    const Result<Bytes> answer = poller_->Await(
        client_->Call(kServer, std::move(request), clock_->Now() + Seconds(60)));
    ASSERT_THAT(answer, IsOk());
    ASSERT_EQ(answer.value().size(), size);
    EXPECT_EQ(AsText(answer.value().span()), AsText(sent.span()));
  }
  EXPECT_EQ(client_->connections(), 1u);
}

TEST_P(TcpNetworkTest, TheLargestMessagePassesAndALargerOneIsRefusedAtOnce) {
  Result<Bytes> largest = poller_->Await(
      client_->Call(kServer, Bytes(kMessageSizeMax), clock_->Now() + Seconds(60)));
  ASSERT_THAT(largest, IsOk());
  EXPECT_EQ(largest.value().size(), kMessageSizeMax);
  const Task<Result<Bytes>> larger =
      client_->Call(kServer, Bytes(kMessageSizeMax + 1), clock_->Now() + Seconds(60));
  EXPECT_TRUE(larger.done());
}

TEST_P(TcpNetworkTest, AnswersOvertakeEachOther) {
  Task<Result<Bytes>> held = Start("held");
  EXPECT_THAT(poller_->Await(Start("quick")), IsOk());
  EXPECT_FALSE(held.done());
  release_->Set();
  const Result<Bytes> answer = poller_->Await(std::move(held));
  ASSERT_THAT(answer, IsOk());
  EXPECT_EQ(AsText(answer.value().span()), "held");
}

TEST_P(TcpNetworkTest, ManyCallsAtOnceEachGetTheirOwnAnswer) {
  std::vector<Task<Result<Bytes>>> calls;
  for (int i = 0; i < 2000; ++i) calls.push_back(Start(std::to_string(i)));
  for (int i = 0; i < 2000; ++i) {
    const Result<Bytes> answer = poller_->Await(std::move(calls[static_cast<size_t>(i)]));
    ASSERT_THAT(answer, IsOk());
    ASSERT_EQ(AsText(answer.value().span()), std::to_string(i));
  }
}

TEST_P(TcpNetworkTest, ADeadlineEndsACallAndTheLateAnswerHarmsNobody) {
  const Result<Bytes> late = poller_->Await(
      client_->Call(kServer, Bytes::CopyOf(AsBytes("held")), clock_->Now() + Millis(5)));
  EXPECT_THAT(late, HasCode(Code::kDeadline));
  release_->Set();
  EXPECT_THAT(poller_->Await(Start("next")), IsOk());
  EXPECT_EQ(client_->malformed_frames(), 0u);
  const Task<Result<Bytes>> past = client_->Call(kServer, Bytes(1), clock_->Now());
  EXPECT_TRUE(past.done());
}

TEST_P(TcpNetworkTest, APeerThatIsAwayIsUnavailableAndFoundAgainWhenItIsBack) {
  EXPECT_THAT(poller_->Await(Start("one")), IsOk());
  Task<Result<Bytes>> interrupted = Start("held");
  poller_->RunUntil([this] { return requests_ == 2; });
  release_->Set();  // The handler ends, but the server is stopped before its loop can run again.
  Task<void> stopping = server_->Stop();
  EXPECT_THAT(poller_->Await(std::move(interrupted)), HasCode(Code::kUnavailable));
  poller_->Await(std::move(stopping));
  server_.reset();
  EXPECT_THAT(poller_->Await(Start("nobody there")), HasCode(Code::kUnavailable));
  StartServer(address_);
  EXPECT_THAT(poller_->Await(Start("back")), IsOk());
}

TEST_P(TcpNetworkTest, ANodeWithoutAnAddressIsUnavailable) {
  EXPECT_THAT(poller_->Await(client_->Call(NodeId{77}, Bytes(1), clock_->Now() + Seconds(1))),
              HasCode(Code::kUnavailable));
  EXPECT_THAT(client_->SetPeer(NodeId{77}, "no port"), HasCode(Code::kInvalid));
}

TEST_P(TcpNetworkTest, AnAddressInUseIsAConflict) {
  EXPECT_THAT(Create({.self = NodeId{3}, .listen = address_}), HasCode(Code::kConflict));
}

TEST_P(TcpNetworkTest, MalformedFramesCostTheirSenderTheConnection) {
  FrameHeader header;
  header.payload_size = 0;
  FrameHeaderBytes garbage = EncodeFrameHeader(header);
  garbage[0] ^= 1;
  EXPECT_TRUE(HangsUpAfter(garbage));
  FrameHeaderBytes huge = EncodeFrameHeader(header);
  huge[15] = 0xff;
  EXPECT_TRUE(HangsUpAfter(huge));
  header.kind = FrameKind::kAnswer;  // To a question that nobody asked.
  EXPECT_TRUE(HangsUpAfter(EncodeFrameHeader(header)));
  EXPECT_EQ(server_->malformed_frames(), 3u);
  EXPECT_THAT(poller_->Await(Start("still served")), IsOk());
}

TEST_P(TcpNetworkTest, AHalfSentFrameIsForgottenWithItsSender) {
  FrameHeader header;
  header.payload_size = 1000;
  const FrameHeaderBytes bytes = EncodeFrameHeader(header);
  SocketAddress address = SocketAddress::Parse(address_).value();
  const int fd = address.NewSocket().value();
  ASSERT_EQ(connect(fd, &address.address(), address.size()), 0);
  ASSERT_EQ(write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  poller_->RunUntil([this] { return server_->connections() == 1; });
  close(fd);
  poller_->RunUntil([this] { return server_->connections() == 0; });
  EXPECT_EQ(requests_, 0);
  EXPECT_EQ(server_->malformed_frames(), 0u);
}

}  // namespace
}  // namespace cairn::kv
