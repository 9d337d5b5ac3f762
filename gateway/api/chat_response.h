// The JSON of chat completions, whole and in chunks: pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/api/engine.h"

namespace cairn::gateway {

// What all objects of one answer have in common.
struct ChatIdentity {
  std::string id;
  int64_t created = 0;  // Seconds since 1970.
  std::string model;
};

// A chunk of a stream whose client asked for usage carries `"usage":null`, except the last.
enum class UsageField { kAbsent, kNull };

std::string CompletionBody(const ChatIdentity& identity, std::string_view text,
                           engine::FinishReason reason, const engine::Usage& usage);

std::string RoleChunk(const ChatIdentity& identity, UsageField field);
std::string TextChunk(const ChatIdentity& identity, UsageField field, std::string_view text);
std::string FinishChunk(const ChatIdentity& identity, UsageField field,
                        engine::FinishReason reason);
std::string UsageChunk(const ChatIdentity& identity, const engine::Usage& usage);

// Tokens in both vocabularies: OpenAI's prompt_tokens_details and DeepSeek's hit and miss.
std::string UsageJson(const engine::Usage& usage);

}  // namespace cairn::gateway
