// Reads chat requests field by field.
#include "gateway/api/chat_request.h"

#include <simdjson.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <utility>

#include "gateway/api/json_text.h"

namespace cairn::gateway {
namespace {

namespace dom = simdjson::dom;

std::string Joined(std::initializer_list<std::string_view> pieces) {
  std::string text;
  for (const std::string_view piece : pieces) text.append(piece);
  return text;
}

std::string Indexed(std::string_view name, size_t index) {
  return Joined({name, "[", std::to_string(index), "]"});
}

// Collects a ChatRequest, or the first thing that is wrong with it. A reader returns false when it
// has set the error.
class Reader {
 public:
  bool Read(dom::element root) {
    dom::object object;
    if (root.get(object) != simdjson::SUCCESS)
      return Fail("the request body must be an object", "");
    for (const dom::key_value_pair field : object) {
      if (field.value.is_null()) continue;  // The same as absent.
      if (!ReadField(field.key, field.value)) return false;
    }
    return CheckWhole();
  }

  ChatRequest TakeRequest() { return std::move(request_); }
  ApiError TakeError() { return std::move(*error_); }

 private:
  using Member = bool (Reader::*)(std::string_view, dom::element);

  struct Entry {
    std::string_view name;
    Member read;
  };

  bool ReadField(std::string_view name, dom::element value) {
    static constexpr Entry kFields[] = {
        {"model", &Reader::Model},
        {"messages", &Reader::Messages},
        {"temperature", &Reader::Temperature},
        {"top_p", &Reader::TopP},
        {"seed", &Reader::Seed},
        {"stop", &Reader::Stop},
        {"max_tokens", &Reader::MaxTokens},
        {"max_completion_tokens", &Reader::MaxTokens},
        {"stream", &Reader::Stream},
        {"stream_options", &Reader::StreamOptions},
        {"n", &Reader::OnlyOne},
        {"logprobs", &Reader::OnlyFalse},
        {"top_logprobs", &Reader::OnlyZero},
        {"frequency_penalty", &Reader::OnlyZero},
        {"presence_penalty", &Reader::OnlyZero},
        {"logit_bias", &Reader::OnlyEmpty},
        {"tools", &Reader::OnlyEmpty},
        {"functions", &Reader::OnlyEmpty},
        {"tool_choice", &Reader::ToolChoice},
        {"function_call", &Reader::ToolChoice},
        {"response_format", &Reader::ResponseFormat},
        {"modalities", &Reader::Modalities},
        {"audio", &Reader::Never},
        {"web_search_options", &Reader::Never},
    };
    const auto* entry = std::ranges::find(kFields, name, &Entry::name);
    if (entry == std::end(kFields)) return true;
    return (this->*entry->read)(name, value);
  }

  bool CheckWhole() {
    if (request_.model.empty()) return Fail("you must provide a model", "model");
    if (request_.generate.messages.empty()) {
      return Fail("'messages' must be a list of at least one message", "messages");
    }
    if (has_stream_options_ && !request_.stream) {
      return Fail("'stream_options' is only allowed when 'stream' is true", "stream_options");
    }
    return true;
  }

  bool Model(std::string_view name, dom::element value) {
    return Text(name, value, request_.model);
  }

  bool Messages(std::string_view name, dom::element value) {
    dom::array messages;
    if (value.get(messages) != simdjson::SUCCESS) return WrongType(name, "a list of messages");
    request_.generate.messages.clear();  // The last of two fields of one name counts.
    size_t index = 0;
    for (const dom::element message : messages) {
      if (!Message(Indexed(name, index), message)) return false;
      ++index;
    }
    return true;
  }

  bool Message(const std::string& place, dom::element value) {
    dom::object object;
    if (value.get(object) != simdjson::SUCCESS) return WrongType(place, "an object");
    engine::ChatMessage message;
    bool has_content = false;
    for (const dom::key_value_pair field : object) {
      const std::string field_place = Joined({place, ".", field.key});
      if (field.value.is_null()) continue;
      if (field.key == "role") {
        if (!Role(field_place, field.value, message.role)) return false;
      } else if (field.key == "content") {
        has_content = true;
        if (!Content(field_place, field.value, message.content)) return false;
      } else if (field.key == "tool_calls" || field.key == "function_call") {
        if (!OnlyEmpty(field_place, field.value)) return false;
      } else if (field.key == "audio") {
        return Never(field_place, field.value);
      }
    }
    if (message.role.empty()) return Fail("a message needs a role", place + ".role");
    if (!has_content) return Fail("a message needs a content", place + ".content");
    request_.generate.messages.push_back(std::move(message));
    return true;
  }

  bool Role(const std::string& place, dom::element value, std::string& role) {
    if (!Text(place, value, role)) return false;
    if (role == "developer") role = "system";
    if (role == "system" || role == "user" || role == "assistant") return true;
    return Fail(Joined({"role '", Quoted(role),
                        "' is not supported: use system, developer, user or assistant"}),
                place);
  }

  bool Content(const std::string& place, dom::element value, std::string& content) {
    content.clear();
    if (value.is_string()) return Text(place, value, content);
    dom::array parts;
    if (value.get(parts) != simdjson::SUCCESS) {
      return WrongType(place, "a string or a list of text parts");
    }
    size_t index = 0;
    for (const dom::element part : parts) {
      if (!Part(Indexed(place, index), part, content)) return false;
      ++index;
    }
    return true;
  }

  bool Part(const std::string& place, dom::element value, std::string& content) {
    std::string_view type;
    std::string_view text;
    if (value["type"].get(type) != simdjson::SUCCESS) {
      return Fail("a content part needs a type", place + ".type");
    }
    if (type != "text") {
      return Fail(
          Joined({"content parts of type '", Quoted(type), "' are not supported, only 'text'"}),
          place + ".type");
    }
    if (value["text"].get(text) != simdjson::SUCCESS) {
      return Fail("a text part needs a text", place + ".text");
    }
    content.append(text);
    return true;
  }

  bool Temperature(std::string_view name, dom::element value) {
    double number = 0;
    if (!Number(name, value, {.least = 0, .most = 2}, number)) return false;
    request_.generate.sampling.temperature = static_cast<float>(number);
    return true;
  }

  bool TopP(std::string_view name, dom::element value) {
    // The engine wants more than 0; the least that a request can mean is the likeliest token.
    constexpr double kLeast = 1e-6;
    double number = 0;
    if (!Number(name, value, {.least = 0, .most = 1}, number)) return false;
    request_.generate.sampling.top_p = static_cast<float>(std::max(number, kLeast));
    return true;
  }

  bool Seed(std::string_view name, dom::element value) {
    int64_t whole = 0;
    uint64_t large = 0;
    if (value.get(whole) == simdjson::SUCCESS) {
      request_.generate.sampling.seed = static_cast<uint64_t>(whole);
    } else if (value.get(large) == simdjson::SUCCESS) {
      request_.generate.sampling.seed = large;
    } else {
      return WrongType(name, "an integer");
    }
    return true;
  }

  bool Stop(std::string_view name, dom::element value) {
    auto& stop = request_.generate.stop;
    stop.clear();
    if (value.is_string()) return StopText(name, value);
    dom::array texts;
    if (value.get(texts) != simdjson::SUCCESS) {
      return WrongType(name, "a string or a list of strings");
    }
    for (const dom::element text : texts) {
      if (stop.size() == kStopTextsMax) return Fail("'stop' may hold at most 4 strings", name);
      if (!StopText(name, text)) return false;
    }
    return true;
  }

  bool StopText(std::string_view name, dom::element value) {
    std::string text;
    if (!Text(name, value, text)) return false;
    if (text.empty() || text.size() > kStopBytesMax) {
      return Fail("a stop string must have 1 to 1024 bytes", name);
    }
    request_.generate.stop.push_back(std::move(text));
    return true;
  }

  bool MaxTokens(std::string_view name, dom::element value) {
    uint64_t count = 0;
    if (value.get(count) != simdjson::SUCCESS || count == 0) {
      return WrongType(name, "an integer of at least 1");
    }
    const auto limit =
        static_cast<uint32_t>(std::min<uint64_t>(count, std::numeric_limits<uint32_t>::max()));
    auto& most = request_.generate.completion_tokens_max;
    most = most ? std::min(*most, limit) : limit;  // When both names are given, both hold.
    return true;
  }

  bool Stream(std::string_view name, dom::element value) {
    return Bool(name, value, request_.stream);
  }

  bool StreamOptions(std::string_view name, dom::element value) {
    dom::object object;
    if (value.get(object) != simdjson::SUCCESS) return WrongType(name, "an object");
    has_stream_options_ = true;
    for (const dom::key_value_pair field : object) {
      if (field.key != "include_usage" || field.value.is_null()) continue;
      if (!Bool("stream_options.include_usage", field.value, request_.include_usage)) return false;
    }
    return true;
  }

  // Fields that we accept only with the value that changes nothing.

  bool OnlyOne(std::string_view name, dom::element value) {
    int64_t number = 0;
    if (value.get(number) == simdjson::SUCCESS && number == 1) return true;
    return Unsupported(name, "only 1 is");
  }
  bool OnlyZero(std::string_view name, dom::element value) {
    double number = 1;
    if (value.get(number) == simdjson::SUCCESS && number == 0) return true;
    return Unsupported(name, "only 0 is");
  }
  bool OnlyFalse(std::string_view name, dom::element value) {
    bool truth = true;
    if (value.get(truth) == simdjson::SUCCESS && !truth) return true;
    return Unsupported(name, "only false is");
  }
  bool OnlyEmpty(std::string_view name, dom::element value) {
    dom::array array;
    dom::object object;
    if (value.get(array) == simdjson::SUCCESS && array.begin() == array.end()) return true;
    if (value.get(object) == simdjson::SUCCESS && object.begin() == object.end()) return true;
    return Unsupported(name, "leave it out");
  }
  bool ToolChoice(std::string_view name, dom::element value) {
    std::string_view choice;
    // Without tools, "auto" can only choose none.
    if (value.get(choice) == simdjson::SUCCESS && (choice == "none" || choice == "auto")) {
      return true;
    }
    return Unsupported(name, "only \"none\" and \"auto\" are");
  }
  bool ResponseFormat(std::string_view name, dom::element value) {
    std::string_view type;
    if (value["type"].get(type) == simdjson::SUCCESS && type == "text") return true;
    return Unsupported(name, "only {\"type\":\"text\"} is");
  }
  bool Modalities(std::string_view name, dom::element value) {
    dom::array array;
    if (value.get(array) != simdjson::SUCCESS) return WrongType(name, "a list of strings");
    for (const dom::element modality : array) {
      std::string_view text;
      if (modality.get(text) != simdjson::SUCCESS || text != "text") {
        return Unsupported(name, "only [\"text\"] is");
      }
    }
    return true;
  }
  bool Never(std::string_view name, dom::element) { return Unsupported(name, "leave it out"); }

  // Values.

  bool Text(std::string_view name, dom::element value, std::string& text) {
    std::string_view view;
    if (value.get(view) != simdjson::SUCCESS) return WrongType(name, "a string");
    text = view;
    return true;
  }
  bool Bool(std::string_view name, dom::element value, bool& truth) {
    return value.get(truth) == simdjson::SUCCESS || WrongType(name, "true or false");
  }
  struct Range {
    int least;
    int most;
  };
  bool Number(std::string_view name, dom::element value, Range range, double& number) {
    const bool inside =
        value.get(number) == simdjson::SUCCESS && number >= range.least && number <= range.most;
    return inside || WrongType(name, Joined({"a number from ", std::to_string(range.least), " to ",
                                             std::to_string(range.most)}));
  }

  // Errors.

  bool WrongType(std::string_view name, std::string_view want) {
    return Fail(Joined({"'", name, "' must be ", want}), name);
  }
  bool Unsupported(std::string_view name, std::string_view instead) {
    Fail(Joined({"this value of '", name, "' is not supported: ", instead}), name);
    error_->code = "unsupported_value";
    return false;
  }
  bool Fail(std::string message, std::string_view param) {
    error_ = InvalidRequest(std::move(message), std::string(param));
    return false;
  }
  // What the client wrote, short enough to repeat.
  static std::string_view Quoted(std::string_view text) { return text.substr(0, 64); }

  ChatRequest request_;
  bool has_stream_options_ = false;
  std::optional<ApiError> error_;
};

ApiError MalformedJson(std::string_view body, simdjson::error_code error) {
  ApiError answer = InvalidRequest("", "");
  answer.code = "invalid_json";
  if (error == simdjson::DEPTH_ERROR) {
    answer.message = "the request body nests deeper than " + std::to_string(kJsonDepthMax);
    return answer;
  }
  const std::string where = WhereNotJson(body);
  const std::string_view kind = simdjson::error_message(error);
  answer.message = where.empty() ? Joined({"the request body is not valid JSON: ", kind})
                                 : Joined({"the request body is not valid JSON: error at ", where});
  return answer;
}

}  // namespace

std::variant<ChatRequest, ApiError> ParseChatRequest(std::string_view body) {
  dom::parser parser;
  dom::element root;
  // Allocation follows the body's size, which the server has bounded.
  simdjson::error_code error = parser.allocate(std::max<size_t>(body.size(), 64), kJsonDepthMax);
  if (error == simdjson::SUCCESS) error = parser.parse(body.data(), body.size()).get(root);
  if (error != simdjson::SUCCESS) return MalformedJson(body, error);
  Reader reader;
  if (!reader.Read(root)) return reader.TakeError();
  return reader.TakeRequest();
}

}  // namespace cairn::gateway
