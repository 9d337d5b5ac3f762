// Turns chat messages into the prompt that a model was trained on, by the template in its file.
#include "engine/tokens/chat_template.h"

#include <string>

#include "engine/tokens/jinja_interpreter.h"
#include "engine/tokens/jinja_parser.h"

namespace cairn::engine {
namespace {

using jinja::Entry;
using jinja::List;
using jinja::Map;
using jinja::Text;
using jinja::Trust;
using jinja::Value;
using kv::Code;
using kv::Result;

Entry Variable(std::string_view name, Value value) {
  return {Text(name, Trust::kTrusted), std::move(value)};
}

Value MessageValues(std::span<const ChatMessage> messages) {
  List list;
  for (const ChatMessage& message : messages) {
    list.push_back(Value::Of(Map{Variable("role", Value::Untrusted(message.role)),
                                 Variable("content", Value::Untrusted(message.content))}));
  }
  return Value::Of(std::move(list));
}

Map Variables(std::span<const ChatMessage> messages, bool add_generation_prompt,
              const Tokenizer& tokenizer) {
  Map variables{Variable("messages", MessageValues(messages)),
                Variable("add_generation_prompt", Value::Of(add_generation_prompt)),
                Variable("tools", Value::None()), Variable("documents", Value::None())};
  const SpecialTokens& special = tokenizer.vocabulary().special();
  const auto add_token = [&](std::string_view name, std::optional<TokenId> id) {
    if (!id) return;
    variables.push_back(Variable(name, Value::Trusted(tokenizer.vocabulary().Spelling(*id))));
  };
  add_token("bos_token", special.bos);
  add_token("eos_token", special.eos);
  add_token("unk_token", special.unknown);
  return variables;
}

}  // namespace

constexpr std::string_view kChatMl =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] "
    "+ "
    "'<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' "
    "}}{% endif %}";

ChatTemplate::ChatTemplate(jinja::Body body)
    : body_(std::make_shared<const jinja::Body>(std::move(body))) {}

Result<ChatTemplate> ChatTemplate::Create(const GgufFile& file) {
  const Result<std::string_view> source = file.GetString("tokenizer.chat_template");
  if (source.code() == Code::kNotFound) return Parse(kChatMl);
  if (!source.ok()) return source.status();
  return Parse(source.value());
}

Result<ChatTemplate> ChatTemplate::Parse(std::string_view source) {
  KV_ASSIGN_OR_RETURN(jinja::Body body, jinja::Parse(source));
  return ChatTemplate(std::move(body));
}

Result<Text> ChatTemplate::RenderText(std::span<const ChatMessage> messages,
                                      bool add_generation_prompt,
                                      const Tokenizer& tokenizer) const {
  return jinja::Run(*body_, Variables(messages, add_generation_prompt, tokenizer));
}

Result<std::vector<TokenId>> ChatTemplate::Render(std::span<const ChatMessage> messages,
                                                  bool add_generation_prompt,
                                                  const Tokenizer& tokenizer) const {
  KV_ASSIGN_OR_RETURN(const Text text, RenderText(messages, add_generation_prompt, tokenizer));
  std::vector<TokenId> tokens = EncodeTrusted(text, tokenizer);
  if (tokenizer.add_bos() && (tokens.empty() || tokens.front() != *tokenizer.bos())) {
    tokens.insert(tokens.begin(), *tokenizer.bos());
  }
  return tokens;
}

std::vector<TokenId> EncodeTrusted(const Text& text, const Tokenizer& tokenizer) {
  std::vector<TokenId> tokens;
  const std::string_view bytes = text.bytes();
  size_t plain_start = 0;  // Since the last control token.
  size_t run_start = 0;
  for (const Text::Run& run : text.runs()) {
    // Up to the run's end only: a control token must lie in it whole.
    const std::string_view visible = bytes.substr(0, run.end);
    size_t at = run.trust == Trust::kTrusted ? run_start : run.end;
    while (at < run.end) {
      const auto control = tokenizer.ControlAt(visible, at);
      if (!control) {
        ++at;
        continue;
      }
      tokenizer.Encode(bytes.substr(plain_start, at - plain_start), tokens);
      tokens.push_back(control->id);
      at += control->size;
      plain_start = at;
    }
    run_start = run.end;
  }
  tokenizer.Encode(bytes.substr(plain_start), tokens);
  return tokens;
}

}  // namespace cairn::engine
