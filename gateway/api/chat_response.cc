// Writes chat completions by hand: the keys are fixed, and a chunk is written per token.
#include "gateway/api/chat_response.h"

#include "gateway/api/json_text.h"
#include "kvstore/base/check.h"

namespace cairn::gateway {
namespace {

std::string Head(const ChatIdentity& identity, std::string_view object) {
  std::string json = R"({"id":)" + JsonString(identity.id) + R"(,"object":")";
  json.append(object).append(R"(","created":)").append(std::to_string(identity.created));
  json.append(R"(,"model":)");
  AppendJsonString(json, identity.model);
  return json;
}

// `delta` and `finish_reason` are JSON.
std::string Chunk(const ChatIdentity& identity, UsageField field, std::string_view delta,
                  std::string_view finish_reason) {
  std::string json = Head(identity, "chat.completion.chunk");
  json.append(R"(,"choices":[{"index":0,"delta":)").append(delta);
  json.append(R"(,"logprobs":null,"finish_reason":)").append(finish_reason).append("}]");
  if (field == UsageField::kNull) json.append(R"(,"usage":null)");
  json.append("}");
  return json;
}

std::string_view ReasonJson(engine::FinishReason reason) {
  // Cancelled and failed answers end without a finish reason.
  KV_CHECK(reason == engine::FinishReason::kStop || reason == engine::FinishReason::kLength);
  return reason == engine::FinishReason::kStop ? R"("stop")" : R"("length")";
}

}  // namespace

std::string CompletionBody(const ChatIdentity& identity, std::string_view text,
                           engine::FinishReason reason, const engine::Usage& usage) {
  std::string json = Head(identity, "chat.completion");
  json.append(R"(,"choices":[{"index":0,"message":{"role":"assistant","content":)");
  AppendJsonString(json, text);
  json.append(R"(,"refusal":null},"logprobs":null,"finish_reason":)").append(ReasonJson(reason));
  json.append(R"(}],"usage":)").append(UsageJson(usage)).append("}");
  return json;
}

std::string RoleChunk(const ChatIdentity& identity, UsageField field) {
  return Chunk(identity, field, R"({"role":"assistant","content":""})", "null");
}

std::string TextChunk(const ChatIdentity& identity, UsageField field, std::string_view text) {
  return Chunk(identity, field, R"({"content":)" + JsonString(text) + "}", "null");
}

std::string FinishChunk(const ChatIdentity& identity, UsageField field,
                        engine::FinishReason reason) {
  return Chunk(identity, field, "{}", ReasonJson(reason));
}

std::string UsageChunk(const ChatIdentity& identity, const engine::Usage& usage) {
  return Head(identity, "chat.completion.chunk") + R"(,"choices":[],"usage":)" + UsageJson(usage) +
         "}";
}

std::string UsageJson(const engine::Usage& usage) {
  KV_CHECK(usage.cached_tokens <= usage.prompt_tokens);
  const auto number = [](uint64_t value) { return std::to_string(value); };
  return R"({"prompt_tokens":)" + number(usage.prompt_tokens) + R"(,"completion_tokens":)" +
         number(usage.completion_tokens) + R"(,"total_tokens":)" +
         number(uint64_t{usage.prompt_tokens} + usage.completion_tokens) +
         R"(,"prompt_tokens_details":{"cached_tokens":)" + number(usage.cached_tokens) +
         R"(},"completion_tokens_details":{"reasoning_tokens":0},"prompt_cache_hit_tokens":)" +
         number(usage.cached_tokens) + R"(,"prompt_cache_miss_tokens":)" +
         number(usage.prompt_tokens - usage.cached_tokens) + "}";
}

}  // namespace cairn::gateway
