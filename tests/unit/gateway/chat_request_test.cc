// What a chat request may say, what it may not, and how we say so.
#include "gateway/api/chat_request.h"

#include <gmock/gmock.h>

#include "gateway/api/json_text.h"

namespace cairn::gateway {
namespace {

using ::testing::HasSubstr;

// A good request with `more` fields, which begin with a comma.
std::string Body(std::string_view more) {
  return R"({"model":"m","messages":[{"role":"user","content":"hi"}])" + std::string(more) + "}";
}

std::string BodyWith(std::string_view field) {
  std::string more(",");
  more.append(field);
  return Body(more);
}

ChatRequest Accepted(std::string_view body) {
  auto parsed = ParseChatRequest(body);
  if (const auto* error = std::get_if<ApiError>(&parsed)) {
    ADD_FAILURE() << body << ": " << error->message;
    return {};
  }
  return std::get<ChatRequest>(std::move(parsed));
}

ApiError Refused(std::string_view body) {
  auto parsed = ParseChatRequest(body);
  if (auto* error = std::get_if<ApiError>(&parsed)) {
    EXPECT_EQ(error->status, 400);
    EXPECT_EQ(error->type, "invalid_request_error");
    return std::move(*error);
  }
  ADD_FAILURE() << "accepted: " << body;
  return {};
}

TEST(ChatRequest, TheLeastIsAModelAndAMessage) {
  const ChatRequest chat = Accepted(Body(""));
  EXPECT_EQ(chat.model, "m");
  EXPECT_FALSE(chat.stream);
  EXPECT_FALSE(chat.include_usage);
  ASSERT_EQ(chat.generate.messages.size(), 1u);
  EXPECT_EQ(chat.generate.messages[0].role, "user");
  EXPECT_EQ(chat.generate.messages[0].content, "hi");
  EXPECT_EQ(chat.generate.sampling.temperature, 1.0f);
  EXPECT_EQ(chat.generate.sampling.top_p, 1.0f);
  EXPECT_EQ(chat.generate.sampling.seed, std::nullopt);
  EXPECT_EQ(chat.generate.completion_tokens_max, std::nullopt);
}

TEST(ChatRequest, EveryFieldThatWeServeIsRead) {
  const ChatRequest chat =
      Accepted(Body(R"(,"temperature":0.5,"top_p":0.25,"seed":-1,"stop":["a","b"],"max_tokens":7,
              "stream":true,"stream_options":{"include_usage":true})"));
  EXPECT_EQ(chat.generate.sampling.temperature, 0.5f);
  EXPECT_EQ(chat.generate.sampling.top_p, 0.25f);
  EXPECT_EQ(chat.generate.sampling.seed, UINT64_MAX);
  EXPECT_THAT(chat.generate.stop, ::testing::ElementsAre("a", "b"));
  EXPECT_EQ(chat.generate.completion_tokens_max, 7u);
  EXPECT_TRUE(chat.stream);
  EXPECT_TRUE(chat.include_usage);
}

TEST(ChatRequest, OneStopTextNeedsNoList) {
  EXPECT_THAT(Accepted(Body(R"(,"stop":"END")")).generate.stop, ::testing::ElementsAre("END"));
}

TEST(ChatRequest, BothNamesOfTheTokenLimitHold) {
  EXPECT_EQ(Accepted(Body(R"(,"max_completion_tokens":5)")).generate.completion_tokens_max, 5u);
  EXPECT_EQ(
      Accepted(Body(R"(,"max_tokens":9,"max_completion_tokens":5)")).generate.completion_tokens_max,
      5u);
  EXPECT_EQ(Accepted(Body(R"(,"max_tokens":99999999999)")).generate.completion_tokens_max,
            UINT32_MAX);
}

TEST(ChatRequest, ContentMayBeTextParts) {
  const ChatRequest chat = Accepted(
      R"({"model":"m","messages":[{"role":"developer","name":"x","content":[
          {"type":"text","text":"one "},{"type":"text","text":"two"}]},
          {"role":"assistant","content":"\u00fc\ud83d\ude00"}]})");
  ASSERT_EQ(chat.generate.messages.size(), 2u);
  EXPECT_EQ(chat.generate.messages[0].role, "system");
  EXPECT_EQ(chat.generate.messages[0].content, "one two");
  EXPECT_EQ(chat.generate.messages[1].content, "\u00fc\U0001F600");
}

TEST(ChatRequest, ControlTokensInTextStayText) {
  const ChatRequest chat =
      Accepted(R"({"model":"m","messages":[{"role":"user","content":"<|im_end|>"}]})");
  EXPECT_EQ(chat.generate.messages[0].content, "<|im_end|>");
}

TEST(ChatRequest, HarmlessFieldsAreAccepted) {
  for (const std::string_view field : {R"("user":"u")",
                                       R"("metadata":{"a":"b"})",
                                       R"("unknown":{"deep":[1,2]})",
                                       R"("n":1)",
                                       R"("tools":[])",
                                       R"("tool_choice":"none")",
                                       R"("tool_choice":"auto")",
                                       R"("logprobs":false)",
                                       R"("top_logprobs":0)",
                                       R"("frequency_penalty":0)",
                                       R"("presence_penalty":0.0)",
                                       R"("logit_bias":{})",
                                       R"("response_format":{"type":"text"})",
                                       R"("modalities":["text"])",
                                       R"("store":true)",
                                       R"("parallel_tool_calls":true)",
                                       R"("service_tier":"auto")",
                                       R"("reasoning_effort":"low")",
                                       R"("prompt_cache_key":"k")",
                                       R"("safety_identifier":"s")",
                                       R"("temperature":null)",
                                       R"("stop":null)",
                                       R"("max_tokens":null)",
                                       R"("tools":null)",
                                       R"("stream":null)",
                                       R"("n":null)",
                                       R"("stop":[])",
                                       R"("top_p":0)",
                                       R"("seed":0)",
                                       R"("audio":null)",
                                       R"("function_call":"none")"}) {
    Accepted(BodyWith(field));
  }
}

TEST(ChatRequest, WhatWeCannotDoIsRefusedByName) {
  struct Case {
    std::string_view field;
    std::string_view param;
  };
  for (const Case& c : {
           Case{R"("n":2)", "n"},
           Case{R"("tools":[{"type":"function","function":{"name":"f"}}])", "tools"},
           Case{R"("functions":[{"name":"f"}])", "functions"},
           Case{R"("tool_choice":"required")", "tool_choice"},
           Case{R"("tool_choice":{"type":"function"})", "tool_choice"},
           Case{R"("logprobs":true)", "logprobs"},
           Case{R"("top_logprobs":3)", "top_logprobs"},
           Case{R"("frequency_penalty":0.5)", "frequency_penalty"},
           Case{R"("presence_penalty":-1)", "presence_penalty"},
           Case{R"("logit_bias":{"50256":-100})", "logit_bias"},
           Case{R"("response_format":{"type":"json_object"})", "response_format"},
           Case{R"("modalities":["audio"])", "modalities"},
           Case{R"("audio":{"voice":"alloy"})", "audio"},
           Case{R"("web_search_options":{})", "web_search_options"},
       }) {
    const ApiError error = Refused(BodyWith(c.field));
    EXPECT_EQ(error.param, c.param);
    EXPECT_EQ(error.code, "unsupported_value") << c.field;
    EXPECT_THAT(error.message, HasSubstr(std::string(c.param)));
  }
}

TEST(ChatRequest, WrongValuesAreRefusedByName) {
  struct Case {
    std::string_view field;
    std::string_view param;
  };
  for (const Case& c : {
           Case{R"("temperature":2.1)", "temperature"},
           Case{R"("temperature":-0.1)", "temperature"},
           Case{R"("temperature":"hot")", "temperature"},
           Case{R"("top_p":1.5)", "top_p"},
           Case{R"("seed":1.5)", "seed"},
           Case{R"("max_tokens":0)", "max_tokens"},
           Case{R"("max_tokens":-1)", "max_tokens"},
           Case{R"("max_completion_tokens":1.5)", "max_completion_tokens"},
           Case{R"("stop":["a","b","c","d","e"])", "stop"},
           Case{R"("stop":"")", "stop"},
           Case{R"("stop":[1])", "stop"},
           Case{R"("stop":7)", "stop"},
           Case{R"("stream":"yes")", "stream"},
           Case{R"("stream_options":{"include_usage":true})", "stream_options"},
           Case{R"("stream":true,"stream_options":{"include_usage":1})",
                "stream_options.include_usage"},
           Case{R"("stream":true,"stream_options":7)", "stream_options"},
           Case{R"("model":7)", "model"},
           Case{R"("model":"")", "model"},
           Case{R"("messages":"hi")", "messages"},
           Case{R"("messages":[])", "messages"},
           Case{R"("messages":["hi"])", "messages[0]"},
           Case{R"("messages":[{"content":"hi"}])", "messages[0].role"},
           Case{R"("messages":[{"role":"user"}])", "messages[0].content"},
           Case{R"("messages":[{"role":"user","content":null}])", "messages[0].content"},
           Case{R"("messages":[{"role":"user","content":7}])", "messages[0].content"},
           Case{R"("messages":[{"role":"tool","content":"x"}])", "messages[0].role"},
           Case{R"("messages":[{"role":"assistant","content":"x","tool_calls":[{"id":"1"}]}])",
                "messages[0].tool_calls"},
           Case{R"("messages":[{"role":"user","content":"a"},{"role":"user","content":[
                  {"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"x"}}]}])",
                "messages[1].content[1].type"},
           Case{R"("messages":[{"role":"user","content":[{"type":"text"}]}])",
                "messages[0].content[0].text"},
           Case{R"("messages":[{"role":"user","content":["a"]}])", "messages[0].content[0].type"},
       }) {
    EXPECT_EQ(Refused(BodyWith(c.field)).param, c.param) << c.field;
  }
}

TEST(ChatRequest, MissingFieldsAreNamed) {
  EXPECT_EQ(Refused("{}").param, "model");
  EXPECT_EQ(Refused(R"({"model":"m"})").param, "messages");
  EXPECT_EQ(Refused("[]").param, "");
  EXPECT_EQ(Refused("7").param, "");
}

TEST(ChatRequest, MalformedJsonSaysWhere) {
  const ApiError error = Refused("{\"model\": \"m\",\n \"messages\": [}");
  EXPECT_EQ(error.code, "invalid_json");
  EXPECT_THAT(error.message, HasSubstr("line 2, column 15"));
  EXPECT_THAT(Refused("{\"model\":").message, HasSubstr("line 1, column 10"));
  EXPECT_THAT(Refused("").message, HasSubstr("not valid JSON"));
  EXPECT_THAT(Refused("{\"model\":\"\xff\"}").message, HasSubstr("line 1, column 11"));
  EXPECT_THAT(Refused(Body(R"(,"user":"\ud800")")).message, HasSubstr("not valid JSON"));
  EXPECT_THAT(Refused(Body(R"(,"seed":1e999)")).message, HasSubstr("not valid JSON"));
}

TEST(ChatRequest, NestingIsBounded) {
  const auto nested = [](size_t depth) {
    std::string field("\"x\":");
    field.append(depth, '[').append(depth, ']');
    return BodyWith(field);
  };
  Accepted(nested(kJsonDepthMax - 2));
  EXPECT_THAT(Refused(nested(kJsonDepthMax)).message, HasSubstr("deeper than 64"));
  EXPECT_THAT(Refused(nested(1'000'000)).message, HasSubstr("deeper than 64"));
  EXPECT_EQ(Refused(std::string(1'000'000, '[')).code, "invalid_json");
}

TEST(ChatRequest, EveryCutOfAGoodRequestIsRefused) {
  const std::string body = Body(R"(,"stop":["\n","é"],"temperature":1.25e0)");
  for (size_t size = 0; size < body.size(); ++size) Refused(body.substr(0, size));
  Accepted(body);
}

TEST(JsonText, AnyBytesBecomeAValidString) {
  EXPECT_EQ(JsonString("a\"b\\c\n\r\t"), R"("a\"b\\c\n\r\t")");
  EXPECT_EQ(JsonString(std::string_view("\0\x1f", 2)), R"("\u0000\u001f")");
  EXPECT_EQ(JsonString("ü€😀"), "\"ü€😀\"");
  EXPECT_EQ(JsonString("\xff"), "\"\uFFFD\"");
  EXPECT_EQ(JsonString("a\xe2\x82"), "\"a\uFFFD\uFFFD\"");          // Cut short.
  EXPECT_EQ(JsonString("\xc0\xaf"), "\"\uFFFD\uFFFD\"");            // Overlong.
  EXPECT_EQ(JsonString("\xed\xa0\x80"), "\"\uFFFD\uFFFD\uFFFD\"");  // A surrogate.
  EXPECT_EQ(JsonString("\xf4\x90\x80\x80").size(), 2u + 4 * 3);     // Beyond U+10FFFF.
}

}  // namespace
}  // namespace cairn::gateway
