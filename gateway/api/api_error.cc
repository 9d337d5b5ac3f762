// Maps what went wrong to OpenAI's error bodies.
#include "gateway/api/api_error.h"

#include <utility>

#include "gateway/api/json_text.h"

namespace cairn::gateway {
namespace {

constexpr std::string_view kInvalidRequestType = "invalid_request_error";
constexpr std::string_view kServerType = "server_error";

// Seconds after which a client of ours may try again.
constexpr std::string_view kRetryAfter = "1";

std::string StringOrNull(const std::string& text) {
  return text.empty() ? "null" : JsonString(text);
}

// The engine's words for a prompt that is too long name the context; see Engine::Submit.
bool IsAboutContext(const kv::Status& status) {
  return status.message().find("context") != std::string::npos;
}

std::string_view CodeOfHttp(int status) {
  switch (status) {
    case 404:
      return "unknown_url";
    case 405:
      return "method_not_allowed";
    case 408:
      return "request_timeout";
    case 413:
      return "request_too_large";
    case 415:
      return "unsupported_media_type";
    case 503:
      return "overloaded";
    default:
      return "";
  }
}

}  // namespace

ApiError InvalidRequest(std::string message, std::string param) {
  return {.status = 400,
          .type = std::string(kInvalidRequestType),
          .message = std::move(message),
          .param = std::move(param)};
}

ApiError FromStatus(const kv::Status& status) {
  switch (status.code()) {
    case kv::Code::kInvalid: {
      ApiError error = InvalidRequest(status.message(), "messages");
      if (IsAboutContext(status)) {
        error.code = "context_length_exceeded";
      } else {
        error.param = "";
      }
      return error;
    }
    case kv::Code::kOverloaded:
      return {.status = 429,
              .type = "rate_limit_error",
              .message = "too many requests are waiting: " + status.message(),
              .code = "rate_limit_exceeded",
              .headers = {{"Retry-After", std::string(kRetryAfter)}}};
    case kv::Code::kUnavailable:
      return FromHttp(503, status.message());
    default:
      return FromHttp(500, "the engine failed: " + status.ToString());
  }
}

ApiError FromHttp(int status, std::string message) {
  ApiError error{.status = status,
                 .type = std::string(status < 500 ? kInvalidRequestType : kServerType),
                 .message = std::move(message),
                 .code = std::string(CodeOfHttp(status))};
  if (status == 503) error.headers = {{"Retry-After", std::string(kRetryAfter)}};
  return error;
}

ApiError Stopping() {
  ApiError error = FromHttp(503, "the server is stopping");
  error.code = "stopping";
  return error;
}

std::string ErrorBody(const ApiError& error) {
  return R"({"error":{"message":)" + JsonString(error.message) + R"(,"type":)" +
         JsonString(error.type) + R"(,"param":)" + StringOrNull(error.param) + R"(,"code":)" +
         StringOrNull(error.code) + "}}";
}

Response ErrorResponse(const ApiError& error) {
  return {.status = error.status,
          .content_type = "application/json",
          .headers = error.headers,
          .body = ErrorBody(error)};
}

}  // namespace cairn::gateway
