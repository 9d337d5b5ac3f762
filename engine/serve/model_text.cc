// Joins tokenizer, chat template and stream decoder.
#include "engine/serve/model_text.h"

#include <utility>

#include "engine/tokens/chat_template.h"
#include "engine/tokens/stream_decoder.h"
#include "engine/tokens/tokenizer.h"

namespace cairn::engine {
namespace {

class DecodedText final : public TextStream {
 public:
  explicit DecodedText(const Tokenizer& tokenizer) : decoder_(tokenizer) {}
  std::string Add(TokenId token) override { return decoder_.Push(token); }
  std::string Finish() override { return decoder_.Finish(); }

 private:
  StreamDecoder decoder_;
};

class ModelText final : public TextCodec {
 public:
  ModelText(std::unique_ptr<Tokenizer> tokenizer, ChatTemplate chat_template)
      : tokenizer_(std::move(tokenizer)), chat_template_(std::move(chat_template)) {}

  kv::Result<std::vector<TokenId>> Render(std::span<const ChatMessage> messages) const override {
    return chat_template_.Render(messages, /*add_generation_prompt=*/true, *tokenizer_);
  }
  std::unique_ptr<TextStream> NewStream() const override {
    return std::make_unique<DecodedText>(*tokenizer_);
  }
  bool EndsAnswer(TokenId token) const override { return tokenizer_->EndsGeneration(token); }

 private:
  const std::unique_ptr<Tokenizer> tokenizer_;
  const ChatTemplate chat_template_;
};

}  // namespace

kv::Result<std::unique_ptr<TextCodec>> CreateModelText(const GgufFile& file) {
  KV_ASSIGN_OR_RETURN(std::unique_ptr<Tokenizer> tokenizer, Tokenizer::Create(file));
  KV_ASSIGN_OR_RETURN(ChatTemplate chat_template, ChatTemplate::Create(file));
  std::unique_ptr<TextCodec> text =
      std::make_unique<ModelText>(std::move(tokenizer), std::move(chat_template));
  return text;
}

}  // namespace cairn::engine
