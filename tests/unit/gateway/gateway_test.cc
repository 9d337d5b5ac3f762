// The whole gateway over real sockets, with an engine that does as it is told.
#include "gateway/api/gateway.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "tests/support/fake_engine.h"
#include "tests/support/raw_client.h"
#include "tests/support/status_matchers.h"
#include "tests/support/steady_test_clock.h"

namespace cairn::gateway {
namespace {

using cairn::testing::FakeEngine;
using cairn::testing::HasCode;
using cairn::testing::IsOk;
using cairn::testing::RawClient;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Keeps every line.
class MemoryLog final : public kv::Log {
 public:
  void Write(kv::LogLevel, std::string_view message) override {
    const std::lock_guard lock(mutex_);
    text_.append(message).append("\n");
  }
  std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

std::string Http(std::string_view method, std::string_view path, std::string_view body,
                 std::string_view headers = "Content-Type: application/json\r\n") {
  return std::string(method) + " " + std::string(path) + " HTTP/1.1\r\nHost: x\r\n" +
         std::string(headers) + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         std::string(body);
}

std::string Chat(std::string_view text, std::string_view more = "") {
  const json content = text;
  return Http("POST", "/v1/chat/completions",
              R"({"model":"fake-model","messages":[{"role":"user","content":)" + content.dump() +
                  "}]" + std::string(more) + "}");
}

constexpr std::string_view kStream = R"(,"stream":true)";

json BodyOf(const std::string& response) {
  const size_t at = response.find("\r\n\r\n");
  return json::parse(response.substr(at == std::string::npos ? response.size() : at + 4), nullptr,
                     false);
}

// The JSON of each event of a stream, by undoing chunks and events; "[DONE]" as a string.
std::vector<json> EventsOf(std::string wire) {
  std::vector<json> events;
  for (size_t at = wire.find("data: "); at != std::string::npos; at = wire.find("data: ", at + 1)) {
    const std::string data = wire.substr(at + 6, wire.find("\n", at) - at - 6);
    events.push_back(data == "[DONE]" ? json(data) : json::parse(data, nullptr, false));
  }
  return events;
}

class GatewayTest : public ::testing::Test {
 protected:
  void Start() {
    auto started = Gateway::Start(options_, engine_, clock_, log_);
    ASSERT_THAT(started, IsOk());
    gateway_ = std::move(started).value();
  }
  std::string Ask(std::string_view request) {
    RawClient client(gateway_->port());
    EXPECT_TRUE(client.Send(request));
    return client.ReadResponse();
  }
  std::vector<json> AskStream(std::string_view request) {
    RawClient client(gateway_->port());
    EXPECT_TRUE(client.Send(request));
    return EventsOf(client.ReadThrough("\r\n0\r\n\r\n"));
  }

  GatewayOptions options_;  // Of Start.
  MemoryLog log_;
  cairn::testing::SteadyTestClock clock_;
  FakeEngine engine_;
  std::unique_ptr<Gateway> gateway_;
};

TEST_F(GatewayTest, AnswersAChat) {
  Start();
  const std::string response = Ask(Chat("the quick fox", R"(,"max_tokens":2)"));
  EXPECT_THAT(response, StartsWith("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"));
  EXPECT_THAT(response, HasSubstr("x-request-id: req_"));
  const json body = BodyOf(response);
  EXPECT_EQ(body["object"], "chat.completion");
  EXPECT_EQ(body["choices"][0]["message"]["content"], "the quick ");
  EXPECT_EQ(body["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(body["usage"]["prompt_tokens"], 3);
  EXPECT_EQ(body["usage"]["completion_tokens"], 2);
  EXPECT_EQ(body["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
}

TEST_F(GatewayTest, CachedTokensAreTheEngines) {
  Start();
  Ask(Chat("one two three"));
  const json usage = BodyOf(Ask(Chat("one two three")))["usage"];
  EXPECT_EQ(usage["prompt_tokens_details"]["cached_tokens"], 2);
  EXPECT_EQ(usage["prompt_cache_hit_tokens"], 2);
  EXPECT_EQ(usage["prompt_cache_miss_tokens"], 1);
}

TEST_F(GatewayTest, StreamsAChat) {
  Start();
  const auto events = AskStream(Chat("a b", kStream));
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0]["choices"][0]["delta"], json::parse(R"({"role":"assistant","content":""})"));
  EXPECT_EQ(events[1]["choices"][0]["delta"]["content"], "a ");
  EXPECT_EQ(events[2]["choices"][0]["delta"]["content"], "b");
  EXPECT_EQ(events[3]["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(events[4], "[DONE]");
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(events[i]["id"], events[0]["id"]);
    EXPECT_FALSE(events[i].contains("usage"));
  }
}

TEST_F(GatewayTest, UsageOfAStreamComesLastWhenAskedFor) {
  Start();
  const auto events =
      AskStream(Chat("a b", R"(,"stream":true,"stream_options":{"include_usage":true})"));
  ASSERT_EQ(events.size(), 6u);
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(events[i].at("usage").is_null());
  EXPECT_EQ(events[4]["choices"], json::array());
  EXPECT_EQ(events[4]["usage"]["total_tokens"], 4);
  EXPECT_EQ(events[5], "[DONE]");
}

TEST_F(GatewayTest, TextSurvivesTheWayBothWays) {
  Start();
  const std::string text = "\"\\\n\t\u0001ü€😀 <|im_end|>";
  EXPECT_EQ(BodyOf(Ask(Chat(text)))["choices"][0]["message"]["content"], text);
  std::string streamed;
  for (const json& event : AskStream(Chat(text, kStream))) {
    if (event.is_object()) streamed += event["choices"][0]["delta"].value("content", "");
  }
  EXPECT_EQ(streamed, text);
}

TEST_F(GatewayTest, DeveloperIsSystemToTheEngine) {
  Start();
  Ask(Http("POST", "/v1/chat/completions",
           R"({"model":"fake-model","temperature":0,"messages":[
               {"role":"developer","content":"be brief"},{"role":"user","content":"hi"}]})"));
  const auto request = engine_.last_request();
  ASSERT_EQ(request.messages.size(), 2u);
  EXPECT_EQ(request.messages[0].role, "system");
  EXPECT_EQ(request.sampling.temperature, 0.0f);
}

TEST_F(GatewayTest, ListsTheModel) {
  Start();
  const json list = BodyOf(Ask(Http("GET", "/v1/models", "")));
  ASSERT_EQ(list["data"].size(), 1u);
  EXPECT_EQ(list["data"][0]["id"], "fake-model");
  EXPECT_EQ(list["data"][0]["object"], "model");
  EXPECT_EQ(BodyOf(Ask(Http("GET", "/v1/models/fake%2Dmodel", "")))["id"], "fake-model");
  const std::string unknown = Ask(Http("GET", "/v1/models/gpt-5", ""));
  EXPECT_THAT(unknown, StartsWith("HTTP/1.1 404 "));
  EXPECT_EQ(BodyOf(unknown)["error"]["code"], "model_not_found");
}

TEST_F(GatewayTest, HealthAndMetricsNeedNoToken) {
  options_.bearer_token = "secret";
  Start();
  EXPECT_EQ(BodyOf(Ask(Http("GET", "/health", "")))["status"], "ok");
  Ask(Http("GET", "/v1/models", "", "Authorization: Bearer secret\r\n"));
  const std::string metrics = Ask(Http("GET", "/metrics", ""));
  EXPECT_THAT(metrics, HasSubstr("Content-Type: text/plain; version=0.0.4"));
  EXPECT_THAT(metrics,
              HasSubstr("cairn_gateway_requests_total{route=\"/health\",status=\"200\"} 1"));
  EXPECT_THAT(metrics,
              HasSubstr("cairn_gateway_requests_total{route=\"/v1/models\",status=\"200\"} 1"));
  EXPECT_THAT(metrics, HasSubstr("cairn_engine_requests_running 0"));
}

TEST_F(GatewayTest, OthersAddTheirMetrics) {
  class Store final : public MetricsSource {
    std::vector<MetricFamily> CollectMetrics() override {
      return {{.name = "cairn_store_puts_total",
               .help = "Puts.",
               .kind = MetricFamily::Kind::kCounter,
               .samples = {{.value = 5}}}};
    }
  } store;
  options_.metrics_sources = {&store};
  Start();
  EXPECT_THAT(Ask(Http("GET", "/metrics", "")), HasSubstr("cairn_store_puts_total 5"));
  gateway_->Stop();
}

TEST_F(GatewayTest, TokensAreChecked) {
  options_.bearer_token = "secret";
  Start();
  for (const std::string_view header :
       {"", "Authorization: secret\r\n", "Authorization: Bearer\r\n", "Authorization: Bearer x\r\n",
        "Authorization: Bearer secret2\r\n", "Authorization: Basic secret\r\n"}) {
    const std::string response = Ask(Http("GET", "/v1/models", "", header));
    EXPECT_THAT(response, StartsWith("HTTP/1.1 401 ")) << header;
    EXPECT_EQ(BodyOf(response)["error"]["code"], "invalid_api_key") << header;
  }
  EXPECT_THAT(Ask(Http("GET", "/v1/models", "", "authorization: bearer secret\r\n")),
              StartsWith("HTTP/1.1 200 "));
}

TEST_F(GatewayTest, ErrorsHaveTheirStatusAndCode) {
  options_.server.body_bytes_max = 10'000;
  Start();
  struct Case {
    std::string request;
    int status;
    std::string_view code;
  };
  const std::string path = "/v1/chat/completions";
  const Case cases[] = {
      {Http("POST", path, "{"), 400, "invalid_json"},
      {Http("POST", path, R"({"model":"gpt-5","messages":[{"role":"user","content":"a"}]})"), 404,
       "model_not_found"},
      {Http("POST", path, "{}", "Content-Type: text/plain\r\n"), 415, "unsupported_media_type"},
      {Http("POST", path, std::string(10'001, ' ')), 413, "request_too_large"},
      {Http("GET", path, ""), 405, "method_not_allowed"},
      {Http("POST", "/health", ""), 405, "method_not_allowed"},
      {Http("POST", "/v1/embeddings", "{}"), 404, "unknown_url"},
      {Http("GET", "/", ""), 404, "unknown_url"},
      {Chat("too long"), 400, "context_length_exceeded"},
      {Chat("overload"), 429, "rate_limit_exceeded"},
      {Chat("overload", kStream), 429, "rate_limit_exceeded"},
      {Chat("unavailable"), 503, "overloaded"},
      {Chat("fail early"), 500, ""},
      {Chat("fail late"), 500, ""},
  };
  for (const Case& c : cases) {
    const std::string response = Ask(c.request);
    EXPECT_THAT(response, StartsWith("HTTP/1.1 " + std::to_string(c.status) + " ")) << c.request;
    EXPECT_THAT(response, HasSubstr("x-request-id: ")) << c.request;
    const json error = BodyOf(response)["error"];
    EXPECT_EQ(error.size(), 4u) << response;
    EXPECT_EQ(error["code"].is_null() ? "" : error["code"].get<std::string>(), c.code) << response;
    EXPECT_EQ(response.find("Retry-After: ") != std::string::npos,
              c.status == 429 || c.status == 503)
        << response;
  }
}

TEST_F(GatewayTest, AnErrorWithinAStreamIsItsLastEvent) {
  Start();
  const auto events = AskStream(Chat("fail late", kStream));
  ASSERT_GE(events.size(), 2u);
  EXPECT_THAT(events.back()["error"]["message"].get<std::string>(),
              HasSubstr("a fault was planned"));
  EXPECT_EQ(events.back()["error"]["type"], "server_error");
}

TEST_F(GatewayTest, ALongPrefillIsKeptAlive) {
  options_.server.keep_alive_every = kv::Millis(2);
  Start();
  RawClient client(gateway_->port());
  ASSERT_TRUE(client.Send(Chat("hold it", kStream)));
  const std::string before = client.ReadThrough(": keep-alive\n\n");
  EXPECT_THAT(before, HasSubstr("text/event-stream"));
  EXPECT_THAT(before, Not(HasSubstr("data: ")));
  engine_.Release();
  EXPECT_THAT(client.ReadThrough("[DONE]"), HasSubstr("\"it\""));
}

TEST_F(GatewayTest, AClientThatLeavesCancelsItsChat) {
  Start();
  for (const std::string& request : {Chat("silent"), Chat("silent", kStream), Chat("endless")}) {
    RawClient client(gateway_->port());
    const uint64_t cancelled = engine_.stats().requests_cancelled;
    ASSERT_TRUE(client.Send(request));
    engine_.AwaitRunning(1);
    client.Close();
    engine_.AwaitCancelled(cancelled + 1);
  }
  RawClient client(gateway_->port());
  ASSERT_TRUE(client.Send(Chat("endless", kStream)));
  client.ReadThrough("on and on");
  client.Close();
  engine_.AwaitCancelled(4);
  gateway_->Stop();  // So that all are counted.
  EXPECT_THAT(log_.text(), HasSubstr("/v1/chat/completions 499 "));
}

TEST_F(GatewayTest, AReaderThatDoesNotReadIsCancelled) {
  options_.server.stream_pending_bytes_max = 64 * kv::kKiB;
  Start();
  RawClient client(gateway_->port(), 4096);
  ASSERT_TRUE(client.Send(Chat("endless", kStream)));
  engine_.AwaitCancelled(1);
}

TEST_F(GatewayTest, AHundredStreamsAtOnce) {
  Start();
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 100; ++i) {
    clients.push_back(std::make_unique<RawClient>(gateway_->port()));
    ASSERT_TRUE(clients.back()->Send(Chat("hold words of " + std::to_string(i), kStream)));
  }
  engine_.AwaitRunning(100);
  engine_.Release();
  for (int i = 0; i < 100; ++i) {
    const auto events = EventsOf(clients[static_cast<size_t>(i)]->ReadThrough("\r\n0\r\n\r\n"));
    ASSERT_EQ(events.size(), 7u) << i;
    EXPECT_EQ(events[4]["choices"][0]["delta"]["content"], std::to_string(i));
  }
}

TEST_F(GatewayTest, PipelinedChatsAreAnsweredInOrder) {
  Start();
  RawClient client(gateway_->port());
  ASSERT_TRUE(client.Send(Chat("first") + Chat("second") + Http("GET", "/health", "")));
  EXPECT_THAT(client.ReadResponse(), HasSubstr("first"));
  EXPECT_THAT(client.ReadResponse(), HasSubstr("second"));
  EXPECT_THAT(client.ReadResponse(), HasSubstr("ok"));
}

TEST_F(GatewayTest, TheRequestIdOfTheClientComesBack) {
  Start();
  const std::string headers = "Content-Type: application/json\r\nX-Request-ID: mine-7\r\n";
  EXPECT_THAT(Ask(Http("GET", "/health", "", headers)), HasSubstr("x-request-id: mine-7\r\n"));
  EXPECT_THAT(Ask(Http("GET", "/health", "", "X-Request-ID: \x01\xff\r\n")),
              Not(HasSubstr("\xff")));
}

TEST_F(GatewayTest, NothingOfWhatIsSaidIsLogged) {
  options_.bearer_token = "tok-secret";
  Start();
  const std::string headers =
      "Content-Type: application/json\r\nAuthorization: Bearer tok-secret\r\n";
  const std::string body =
      R"({"model":"fake-model","messages":[{"role":"user","content":"mysecret"}]})";
  Ask(Http("POST", "/v1/chat/completions", body, headers));
  Ask(Http("POST", "/v1/chat/completions", "{mysecret", headers));
  Ask(Http("GET", "/mysecret", "", headers));
  gateway_->Stop();
  EXPECT_THAT(log_.text(), HasSubstr("/v1/chat/completions 200 "));
  EXPECT_THAT(log_.text(), Not(HasSubstr("secret")));
}

TEST_F(GatewayTest, StopLetsAStreamEndAndRefusesTheNext) {
  options_.server.stop_grace = kv::Seconds(3600);
  Start();
  RawClient busy(gateway_->port());
  ASSERT_TRUE(busy.Send(Chat("hold on", kStream)));
  busy.ReadThrough("\r\n\r\n");
  engine_.AwaitRunning(1);
  RawClient idle(gateway_->port());
  ASSERT_TRUE(idle.Send(Http("GET", "/health", "")));
  EXPECT_THAT(idle.ReadResponse(), StartsWith("HTTP/1.1 200 "));
  std::thread stopper([this] { gateway_->Stop(); });
  EXPECT_EQ(idle.ReadToEnd(), "");
  engine_.Release();
  EXPECT_THAT(busy.ReadToEnd(), HasSubstr("[DONE]"));
  stopper.join();
}

TEST_F(GatewayTest, StopCancelsWhatOutlastsTheGrace) {
  options_.server.stop_grace = kv::Millis(10);
  Start();
  RawClient client(gateway_->port());
  ASSERT_TRUE(client.Send(Chat("silent", kStream)));
  engine_.AwaitRunning(1);
  gateway_->Stop();
  engine_.AwaitCancelled(1);
}

TEST_F(GatewayTest, APortInUseIsAnError) {
  Start();
  options_.server.port = gateway_->port();
  EXPECT_THAT(Gateway::Start(options_, engine_, clock_, log_), HasCode(kv::Code::kConflict));
}

}  // namespace
}  // namespace cairn::gateway
