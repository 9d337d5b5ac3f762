// Reads the body of POST /v1/chat/completions: pure, and strict about what we cannot do.
//
// Unknown fields are ignored, as clients of later versions expect. A known field that would change
// the answer in a way that we cannot deliver is refused, unless its value is the harmless default.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "engine/api/engine.h"
#include "gateway/api/api_error.h"

namespace cairn::gateway {

// Deeper nesting is refused. Requests of real clients without tools have about 5 levels.
inline constexpr size_t kJsonDepthMax = 64;
inline constexpr size_t kStopTextsMax = 4;
inline constexpr size_t kStopBytesMax = 1024;

struct ChatRequest {
  std::string model;
  bool stream = false;
  bool include_usage = false;  // Of stream_options.
  engine::GenerateRequest generate;
};

std::variant<ChatRequest, ApiError> ParseChatRequest(std::string_view body);

}  // namespace cairn::gateway
