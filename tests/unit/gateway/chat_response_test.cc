// The exact JSON of answers and errors.
#include "gateway/api/chat_response.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "gateway/api/api_error.h"
#include "gateway/api/metrics.h"

namespace cairn::gateway {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const ChatIdentity kIdentity{.id = "chatcmpl-1", .created = 7, .model = "m"};
const engine::Usage kUsage{.prompt_tokens = 100, .cached_tokens = 64, .completion_tokens = 9};

TEST(ChatResponse, UsageSpeaksBothVocabularies) {
  EXPECT_EQ(json::parse(UsageJson(kUsage)), json::parse(R"({
    "prompt_tokens":100,"completion_tokens":9,"total_tokens":109,
    "prompt_tokens_details":{"cached_tokens":64},
    "completion_tokens_details":{"reasoning_tokens":0},
    "prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36})"));
}

TEST(ChatResponse, ZeroCachedTokensAreSaidToo) {
  const json usage = json::parse(UsageJson({.prompt_tokens = 5}));
  EXPECT_EQ(usage["prompt_tokens_details"]["cached_tokens"], 0);
  EXPECT_EQ(usage["prompt_cache_miss_tokens"], 5);
}

TEST(ChatResponse, WholeAnswer) {
  EXPECT_EQ(
      json::parse(CompletionBody(kIdentity, "say \"hi\"\n", engine::FinishReason::kLength, kUsage)),
      json::parse(R"({"id":"chatcmpl-1","object":"chat.completion","created":7,"model":"m",
    "choices":[{"index":0,"message":{"role":"assistant","content":"say \"hi\"\n","refusal":null},
                "logprobs":null,"finish_reason":"length"}],"usage":)" +
                  UsageJson(kUsage) + "}"));
}

TEST(ChatResponse, Chunks) {
  EXPECT_EQ(RoleChunk(kIdentity, UsageField::kNull),
            R"({"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m",)"
            R"("choices":[{"index":0,"delta":{"role":"assistant","content":""},)"
            R"("logprobs":null,"finish_reason":null}],"usage":null})");
  EXPECT_EQ(TextChunk(kIdentity, UsageField::kAbsent, "Hi"),
            R"({"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m",)"
            R"("choices":[{"index":0,"delta":{"content":"Hi"},)"
            R"("logprobs":null,"finish_reason":null}]})");
  EXPECT_EQ(FinishChunk(kIdentity, UsageField::kAbsent, engine::FinishReason::kStop),
            R"({"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m",)"
            R"("choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]})");
  const json last = json::parse(UsageChunk(kIdentity, kUsage));
  EXPECT_EQ(last["choices"], json::array());
  EXPECT_EQ(last["usage"], json::parse(UsageJson(kUsage)));
}

TEST(ApiError, BodyHasAllFourKeys) {
  EXPECT_EQ(ErrorBody(InvalidRequest("bad \"x\"", "n")),
            R"({"error":{"message":"bad \"x\"","type":"invalid_request_error","param":"n",)"
            R"("code":null}})");
}

TEST(ApiError, StatusesOfTheEngineHaveTheirOwnAnswers) {
  using kv::Code;
  struct Case {
    kv::Status status;
    int http;
    std::string_view code;
  };
  for (const Case& c : {
           Case{kv::Status(Code::kInvalid, "the prompt has 9 tokens, the context 8"), 400,
                "context_length_exceeded"},
           Case{kv::Status(Code::kInvalid, "no messages"), 400, ""},
           Case{kv::Status(Code::kOverloaded, "full"), 429, "rate_limit_exceeded"},
           Case{kv::Status(Code::kUnavailable, "stopping"), 503, "overloaded"},
           Case{kv::Status(Code::kCorrupt, "x"), 500, ""},
           Case{kv::Status(Code::kNoSpace, "x"), 500, ""},
       }) {
    const ApiError error = FromStatus(c.status);
    EXPECT_EQ(error.status, c.http) << c.status.ToString();
    EXPECT_EQ(error.code, c.code) << c.status.ToString();
    const bool may_retry = c.http == 429 || c.http == 503;
    EXPECT_EQ(error.headers.size(), may_retry ? 1u : 0u) << c.status.ToString();
  }
}

TEST(Metrics, CountsByRouteAndStatus) {
  Metrics metrics;
  metrics.CountRequest(Route::kChat, 200, kv::Millis(20));
  metrics.CountRequest(Route::kChat, 200, kv::Millis(20));
  metrics.CountRequest(Route::kOther, 404, kv::Millis(1));
  metrics.CountFirstToken(kv::Millis(3), kUsage);
  metrics.CountTokens(kUsage);
  const std::string text =
      metrics.Text({{.name = "cairn_store_targets",
                     .help = "Targets.",
                     .samples = {{.labels = {{"state", "up"}}, .value = 12}}}});
  EXPECT_THAT(text, HasSubstr("cairn_gateway_requests_total{route=\"/v1/chat/completions\","
                              "status=\"200\"} 2"));
  EXPECT_THAT(text, HasSubstr("cairn_gateway_requests_total{route=\"other\",status=\"404\"} 1"));
  EXPECT_THAT(text, HasSubstr("cairn_gateway_request_seconds_bucket{route=\"/v1/chat/completions\","
                              "le=\"0.025\"} 2"));
  EXPECT_THAT(text, HasSubstr("cairn_gateway_first_token_seconds_count{cache=\"hit\"} 1"));
  EXPECT_THAT(text, HasSubstr("cairn_gateway_tokens_total{kind=\"cached\"} 64"));
  EXPECT_THAT(text, HasSubstr("# TYPE cairn_store_targets gauge"));
  EXPECT_THAT(text, HasSubstr("cairn_store_targets{state=\"up\"} 12"));
}

TEST(Metrics, TheEnginesTotalsAreFamilies) {
  const engine::EngineStats stats{.requests_started = 3, .requests_running = 2};
  const std::string text = Metrics().Text(EngineFamilies(stats));
  EXPECT_THAT(text, HasSubstr("# TYPE cairn_engine_requests_started_total counter"));
  EXPECT_THAT(text, HasSubstr("cairn_engine_requests_started_total 3"));
  EXPECT_THAT(text, HasSubstr("cairn_engine_requests_running 2"));
}

}  // namespace
}  // namespace cairn::gateway
