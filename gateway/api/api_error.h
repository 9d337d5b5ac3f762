// What can go wrong with a request, in OpenAI's vocabulary.
#pragma once

#include <string>
#include <string_view>

#include "gateway/http/message.h"
#include "kvstore/base/status.h"

namespace cairn::gateway {

struct ApiError {
  int status = 500;  // Of HTTP.
  std::string type{};
  std::string message{};
  std::string param{};  // The field at fault. Empty: null.
  std::string code{};   // Empty: null.
  Headers headers{};    // Further ones of the response.
};

// The request is wrong; `param` names the field, or is empty.
ApiError InvalidRequest(std::string message, std::string param);
// What the engine says: kInvalid is 400 (with code context_length_exceeded when its words are of
// the context), kOverloaded 429, kUnavailable 503, and the rest 500.
ApiError FromStatus(const kv::Status& status);
// For a status that HTTP itself gives: 400, 404, 405, 408, 413, 415, 431, 500, 503.
ApiError FromHttp(int status, std::string message);
ApiError Stopping();

// {"error":{"message":..,"type":..,"param":..,"code":..}}
std::string ErrorBody(const ApiError& error);
Response ErrorResponse(const ApiError& error);

}  // namespace cairn::gateway
