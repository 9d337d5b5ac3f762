// What the engine core needs of a model's text side: messages to tokens, tokens to text.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/api/engine.h"
#include "engine/api/token.h"
#include "kvstore/base/result.h"

namespace cairn::engine {

// Turns the tokens of one answer into text as they come. One thread at a time.
class TextStream {
 public:
  virtual ~TextStream() = default;

  // The text that is complete after `token`: whole UTF-8 characters, maybe none.
  virtual std::string Add(TokenId token) = 0;
  // What is left at the end; an unfinished character becomes U+FFFD.
  virtual std::string Finish() = 0;
};

// Thread-safe.
class TextCodec {
 public:
  virtual ~TextCodec() = default;

  // The prompt that makes the model answer the conversation. kInvalid when the model's template
  // refuses it. Control tokens in the messages' text stay text.
  virtual kv::Result<std::vector<TokenId>> Render(std::span<const ChatMessage> messages) const = 0;

  virtual std::unique_ptr<TextStream> NewStream() const = 0;

  // True for tokens that end an answer; they have no text.
  virtual bool EndsAnswer(TokenId token) const = 0;
};

}  // namespace cairn::engine
