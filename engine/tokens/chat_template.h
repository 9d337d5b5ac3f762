// Turns chat messages into the prompt that a model was trained on, by the template in its file.
//
// What the messages say can never become a control token: every byte of the prompt is known to be
// of the template or of a message, and control tokens are looked for in the template's bytes only.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/api/engine.h"
#include "engine/api/token.h"
#include "engine/gguf/gguf.h"
#include "engine/tokens/jinja_ast.h"
#include "engine/tokens/jinja_text.h"
#include "engine/tokens/tokenizer.h"
#include "kvstore/base/result.h"

namespace cairn::engine {

// <|im_start|>role\ncontent<|im_end|>\n for each message: what files without a template get.
extern const std::string_view kChatMl;

// Thread-safe: rendering changes nothing.
class ChatTemplate {
 public:
  // tokenizer.chat_template, else kChatMl. kInvalid names the line of a malformed template.
  static kv::Result<ChatTemplate> Create(const GgufFile& file);
  static kv::Result<ChatTemplate> Parse(std::string_view source);

  // The prompt's tokens, bos included where the model wants it. With `add_generation_prompt` it
  // ends where the assistant's next message begins. kInvalid when the template refuses the
  // messages (its own words are passed on) or cannot go on.
  kv::Result<std::vector<TokenId>> Render(std::span<const ChatMessage> messages,
                                          bool add_generation_prompt,
                                          const Tokenizer& tokenizer) const;

  // The same as text, with the origin of every byte.
  kv::Result<jinja::Text> RenderText(std::span<const ChatMessage> messages,
                                     bool add_generation_prompt, const Tokenizer& tokenizer) const;

 private:
  explicit ChatTemplate(jinja::Body body);

  std::shared_ptr<const jinja::Body> body_;  // Shared by copies: it is never changed.
};

// Text to tokens, with control tokens found in its trusted stretches only.
std::vector<TokenId> EncodeTrusted(const jinja::Text& text, const Tokenizer& tokenizer);

}  // namespace cairn::engine
