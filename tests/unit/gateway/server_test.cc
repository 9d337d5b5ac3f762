// The HTTP server against clients that behave, and clients that do not.
#include "gateway/http/server.h"

#include <gmock/gmock.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/support/raw_client.h"
#include "tests/support/status_matchers.h"

namespace cairn::gateway {
namespace {

using cairn::testing::HasCode;
using cairn::testing::IsOk;
using cairn::testing::RawClient;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Answers "/echo" at once with method and body; keeps the exchange of any other path for the test.
class TestHandler final : public Handler {
 public:
  void Handle(Request request, std::shared_ptr<Exchange> exchange) override {
    if (request.path == "/throw") throw std::string("boom");
    if (request.path == "/echo") {
      exchange->Respond({.content_type = "text/plain",
                         .headers = {},
                         .body = request.method + " " + request.body});
      return;
    }
    exchange->WhenGone([this] {
      const std::lock_guard lock(mutex_);
      ++gone_;
      changed_.notify_all();
    });
    const std::lock_guard lock(mutex_);
    held_.push_back(std::move(exchange));
    changed_.notify_all();
  }
  Response Refuse(int status, const std::string& message) override {
    return {.status = status, .content_type = "text/plain", .headers = {}, .body = message};
  }

  std::shared_ptr<Exchange> AwaitHeld() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !held_.empty(); });
    std::shared_ptr<Exchange> first = std::move(held_.front());
    held_.erase(held_.begin());
    return first;
  }
  void AwaitGone(uint32_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return gone_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Exchange>> held_;
  uint32_t gone_ = 0;
};

class ServerTest : public ::testing::Test {
 protected:
  void Start(ServerOptions options = {}) {
    auto started = Server::Start(std::move(options), handler_, log_);
    ASSERT_THAT(started, IsOk());
    server_ = std::move(started).value();
  }
  uint16_t port() const { return server_->port(); }

  kv::NullLog log_;
  TestHandler handler_;
  std::unique_ptr<Server> server_;
};

constexpr std::string_view kEcho = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi";
constexpr std::string_view kHold = "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n";

TEST_F(ServerTest, AnswersManyRequestsOnOneConnection) {
  Start();
  RawClient client(port());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(client.Send(kEcho));
    EXPECT_THAT(client.ReadResponse(), ::testing::EndsWith("\r\n\r\nPOST hi"));
  }
}

TEST_F(ServerTest, AnswersPipelinedRequestsInOrder) {
  Start();
  RawClient client(port());
  std::string all;
  for (int i = 0; i < 5; ++i) {
    all += "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n" + std::to_string(i);
  }
  ASSERT_TRUE(client.Send(all));
  for (int i = 0; i < 5; ++i) {
    EXPECT_THAT(client.ReadResponse(), ::testing::EndsWith("POST " + std::to_string(i)));
  }
}

TEST_F(ServerTest, TakesARequestInSingleBytes) {
  Start();
  RawClient client(port());
  for (const char c : kEcho) ASSERT_TRUE(client.Send({&c, 1}));
  EXPECT_THAT(client.ReadResponse(), ::testing::EndsWith("POST hi"));
}

TEST_F(ServerTest, TakesAChunkedBody) {
  Start();
  RawClient client(port());
  ASSERT_TRUE(
      client.Send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                  "2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"));
  EXPECT_THAT(client.ReadResponse(), ::testing::EndsWith("POST abc"));
}

TEST_F(ServerTest, AsksForTheBodyWhenTheClientWaits) {
  Start();
  RawClient client(port());
  ASSERT_TRUE(client.Send(
      "POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"));
  EXPECT_EQ(client.ReadThrough("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  ASSERT_TRUE(client.Send("ok"));
  EXPECT_THAT(client.ReadResponse(), ::testing::EndsWith("POST ok"));
}

TEST_F(ServerTest, ClosesWhenTheClientAsksForIt) {
  Start();
  RawClient client(port());
  ASSERT_TRUE(client.Send("GET /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
  EXPECT_THAT(client.ReadToEnd(), HasSubstr("Connection: close\r\n"));
}

TEST_F(ServerTest, RefusesWhatIsNotHttp) {
  Start();
  for (const std::string_view garbage :
       {std::string_view("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 tls", 15),
        std::string_view("hello\r\n\r\n"), std::string_view("GET / HTTP/9.9\r\n\r\n"),
        std::string_view("GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"),
        std::string_view("GET / HTTP/1.1\r\nno colon\r\n\r\n"),
        std::string_view(
            "POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"),
        std::string_view("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")}) {
    RawClient client(port());
    ASSERT_TRUE(client.Send(garbage));
    EXPECT_THAT(client.ReadToEnd(), StartsWith("HTTP/1.1 400 Bad Request\r\n")) << garbage;
  }
}

TEST_F(ServerTest, RefusesABodyOverTheLimitThatIsStillBeingSent) {
  Start({.body_bytes_max = 1000});
  RawClient client(port());
  ASSERT_TRUE(client.Send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\n" +
                          std::string(3'000'000, 'x')));
  EXPECT_THAT(client.ReadToEnd(), StartsWith("HTTP/1.1 413 "));
}

TEST_F(ServerTest, RefusesAChunkedBodyOverTheLimit) {
  Start({.body_bytes_max = 1000});
  RawClient client(port());
  ASSERT_TRUE(
      client.Send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n" +
                  std::string(2000, 'x')));
  EXPECT_THAT(client.ReadToEnd(), StartsWith("HTTP/1.1 413 "));
}

TEST_F(ServerTest, RefusesAHeaderOverTheLimit) {
  Start({.header_bytes_max = 1000});
  RawClient client(port());
  ASSERT_TRUE(client.Send("GET /echo HTTP/1.1\r\nX: " + std::string(5000, 'x')));
  EXPECT_THAT(client.ReadToEnd(), StartsWith("HTTP/1.1 431 "));
}

TEST_F(ServerTest, BoundsTheBodiesOfAllRequestsTogether) {
  Start({.body_bytes_max = 1000, .bodies_bytes_max = 1500});
  RawClient first(port());
  ASSERT_TRUE(first.Send(
      "POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 900\r\n\r\n"));
  EXPECT_THAT(first.ReadThrough("\r\n\r\n"), StartsWith("HTTP/1.1 100 "));
  RawClient second(port());
  ASSERT_TRUE(second.Send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\n"));
  EXPECT_THAT(second.ReadToEnd(), StartsWith("HTTP/1.1 503 "));
  ASSERT_TRUE(first.Send(std::string(900, 'x')));
  EXPECT_THAT(first.ReadResponse(), StartsWith("HTTP/1.1 200 "));
}

TEST_F(ServerTest, SlowHeadersEndWith408) {
  Start({.header_read_max = kv::Millis(50)});
  RawClient client(port());
  ASSERT_TRUE(client.Send("GET /echo HT"));
  EXPECT_THAT(client.ReadToEnd(), StartsWith("HTTP/1.1 408 "));
}

TEST_F(ServerTest, SlowBodiesEndWith408) {
  Start({.body_read_max = kv::Millis(50)});
  RawClient client(port());
  ASSERT_TRUE(client.Send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab"));
  EXPECT_THAT(client.ReadToEnd(), StartsWith("HTTP/1.1 408 "));
}

TEST_F(ServerTest, IdleConnectionsAreClosedWithoutAWord) {
  Start({.idle_max = kv::Millis(20)});
  RawClient client(port());
  EXPECT_EQ(client.ReadToEnd(), "");
}

TEST_F(ServerTest, ConnectionsOverTheLimitAreTold) {
  Start({.connections_max = 1});
  RawClient first(port());
  ASSERT_TRUE(first.Send(kEcho));
  EXPECT_THAT(first.ReadResponse(), StartsWith("HTTP/1.1 200 "));
  RawClient second(port());
  EXPECT_THAT(second.ReadToEnd(), StartsWith("HTTP/1.1 503 "));
}

TEST_F(ServerTest, AClientThatLeavesIsNoticedBeforeTheAnswer) {
  Start();
  RawClient client(port());
  ASSERT_TRUE(client.Send(kHold));
  const auto exchange = handler_.AwaitHeld();
  client.Close();
  handler_.AwaitGone(1);
  exchange->Respond({});  // Too late, and harmless.
}

TEST_F(ServerTest, AClientThatLeavesIsNoticedWithinAStream) {
  Start();
  RawClient client(port());
  ASSERT_TRUE(client.Send(kHold));
  const auto exchange = handler_.AwaitHeld();
  exchange->StartStream({.content_type = "text/event-stream"}, "");
  EXPECT_TRUE(exchange->Write("one"));
  EXPECT_THAT(client.ReadThrough("one\r\n"), HasSubstr("Transfer-Encoding: chunked\r\n"));
  client.Close();
  handler_.AwaitGone(1);
  EXPECT_FALSE(exchange->Write("two"));
}

TEST_F(ServerTest, AStreamEndsAndTheConnectionGoesOn) {
  Start();
  RawClient client(port());
  ASSERT_TRUE(client.Send(kHold));
  const auto exchange = handler_.AwaitHeld();
  exchange->StartStream({.content_type = "text/event-stream"}, "");
  EXPECT_TRUE(exchange->Write("one"));
  exchange->Finish();
  EXPECT_THAT(client.ReadThrough("0\r\n\r\n"), HasSubstr("3\r\none\r\n"));
  ASSERT_TRUE(client.Send(kEcho));
  EXPECT_THAT(client.ReadResponse(), ::testing::EndsWith("POST hi"));
}

TEST_F(ServerTest, OldClientsGetAStreamThatEndsWithTheConnection) {
  Start();
  RawClient client(port());
  ASSERT_TRUE(client.Send("GET /hold HTTP/1.0\r\n\r\n"));
  const auto exchange = handler_.AwaitHeld();
  exchange->StartStream({.content_type = "text/event-stream"}, "");
  EXPECT_TRUE(exchange->Write("one"));
  exchange->Finish();
  EXPECT_THAT(client.ReadToEnd(), ::testing::EndsWith("\r\n\r\none"));
}

TEST_F(ServerTest, ASilentStreamIsKeptAlive) {
  Start({.keep_alive_every = kv::Millis(5)});
  RawClient client(port());
  ASSERT_TRUE(client.Send(kHold));
  const auto exchange = handler_.AwaitHeld();
  exchange->StartStream({.content_type = "text/event-stream"}, ": here\n\n");
  EXPECT_THAT(client.ReadThrough("8\r\n: here\n\n\r\n"), HasSubstr(": here"));
  exchange->Finish();
}

TEST_F(ServerTest, AReaderThatDoesNotReadIsDroppedAtTheBound) {
  Start({.stream_pending_bytes_max = 100 * kv::kKiB});
  RawClient client(port(), 4096);
  ASSERT_TRUE(client.Send(kHold));
  const auto exchange = handler_.AwaitHeld();
  exchange->StartStream({.content_type = "text/event-stream"}, "");
  // Far more than the bound and the kernel's buffers together can hold.
  const std::string piece(10 * kv::kKiB, 'x');
  uint64_t accepted = 0;
  while (accepted < 64 * kv::kMiB && exchange->Write(piece)) accepted += piece.size();
  EXPECT_LT(accepted, 64 * kv::kMiB);
  handler_.AwaitGone(1);
}

TEST_F(ServerTest, AStalledReaderIsDroppedAtTheDeadline) {
  Start({.stream_pending_bytes_max = 64 * kv::kMiB, .write_stall_max = kv::Millis(50)});
  RawClient client(port(), 4096);
  ASSERT_TRUE(client.Send(kHold));
  const auto exchange = handler_.AwaitHeld();
  exchange->StartStream({.content_type = "text/event-stream"}, "");
  exchange->Write(std::string(32 * kv::kMiB, 'x'));
  handler_.AwaitGone(1);
}

TEST_F(ServerTest, AHandlerThatThrowsIsA500) {
  Start();
  RawClient client(port());
  ASSERT_TRUE(client.Send("GET /throw HTTP/1.1\r\nHost: x\r\n\r\n"));
  EXPECT_THAT(client.ReadResponse(), StartsWith("HTTP/1.1 500 "));
}

TEST_F(ServerTest, HeadHasNoBody) {
  Start();
  RawClient client(port());
  ASSERT_TRUE(client.Send("HEAD /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
  EXPECT_THAT(client.ReadToEnd(), ::testing::EndsWith("Content-Length: 5\r\n\r\n"));
}

TEST_F(ServerTest, APortInUseIsAClearError) {
  Start();
  const auto second = Server::Start({.port = port()}, handler_, log_);
  EXPECT_THAT(second, HasCode(kv::Code::kConflict));
  EXPECT_THAT(second.status().message(), HasSubstr("port " + std::to_string(port())));
  EXPECT_THAT(second.status().message(), HasSubstr("in use"));
}

TEST_F(ServerTest, ANameIsNotAnAddress) {
  EXPECT_THAT(Server::Start({.address = "example"}, handler_, log_), HasCode(kv::Code::kInvalid));
  // TEST-NET-1 (RFC 5737): no machine has it.
  EXPECT_THAT(Server::Start({.address = "192.0.2.1"}, handler_, log_), HasCode(kv::Code::kInvalid));
}

TEST_F(ServerTest, StopClosesIdleConnectionsAndLetsAnswersEnd) {
  Start({.stop_grace = kv::Seconds(3600)});
  RawClient idle(port());
  ASSERT_TRUE(idle.Send(kEcho));
  EXPECT_THAT(idle.ReadResponse(), StartsWith("HTTP/1.1 200 "));
  RawClient busy(port());
  ASSERT_TRUE(busy.Send(kHold));
  const auto exchange = handler_.AwaitHeld();
  exchange->StartStream({.content_type = "text/event-stream"}, "");
  std::thread stopper([this] { server_->Stop(); });
  EXPECT_EQ(idle.ReadToEnd(), "");
  exchange->Write("last words");
  exchange->Finish();
  EXPECT_THAT(busy.ReadToEnd(), HasSubstr("last words"));
  stopper.join();
  EXPECT_FALSE(RawClient(port()).connected());
}

TEST_F(ServerTest, StopCutsWhatOutlastsTheGrace) {
  Start({.stop_grace = kv::Millis(20)});
  RawClient client(port());
  ASSERT_TRUE(client.Send(kHold));
  const auto exchange = handler_.AwaitHeld();
  server_->Stop();
  handler_.AwaitGone(1);
  EXPECT_EQ(client.ReadToEnd(), "");
  server_.reset();
  exchange->Respond({});  // The server is gone; the exchange is not.
}

}  // namespace
}  // namespace cairn::gateway
