// Text to tokens and back, as the model file says.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/token.h"
#include "engine/gguf/gguf.h"
#include "engine/tokens/text_encoder.h"
#include "engine/tokens/token_trie.h"
#include "engine/tokens/vocabulary.h"
#include "kvstore/base/result.h"

namespace cairn::engine {

// Thread-safe: nothing changes after Create.
class Tokenizer {
 public:
  // Needs `file` only during the call. kInvalid for tokenizers that we do not know, or whose parts
  // do not fit one another.
  static kv::Result<std::unique_ptr<Tokenizer>> Create(const GgufFile& file);

  // Control tokens never come out, whatever the text holds, and no bos is added.
  std::vector<TokenId> Encode(std::string_view text) const;
  void Encode(std::string_view text, std::vector<TokenId>& tokens) const;

  // The bytes of the tokens in a row, which may be no valid UTF-8 at their ends. Control tokens
  // stand for nothing. Ids outside the vocabulary too.
  std::string Decode(std::span<const TokenId> tokens) const;

  // The longest control token spelled at text[at].
  std::optional<TokenTrie::Match> ControlAt(std::string_view text, size_t at) const {
    return control_.LongestAt(text, at);
  }

  const Vocabulary& vocabulary() const { return vocabulary_; }
  uint32_t vocabulary_size() const { return vocabulary_.size(); }
  std::optional<TokenId> bos() const { return vocabulary_.special().bos; }
  std::optional<TokenId> eos() const { return vocabulary_.special().eos; }
  std::optional<TokenId> eot() const { return vocabulary_.special().eot; }
  bool EndsGeneration(TokenId id) const {
    return id < vocabulary_.size() && vocabulary_.EndsGeneration(id);
  }
  // Whether a prompt begins with bos even where its template does not say so.
  bool add_bos() const { return add_bos_; }
  // Whether Encode puts a space before each text, so that the first decoded one is to be dropped.
  bool adds_space_prefix() const { return adds_space_prefix_; }

 private:
  explicit Tokenizer(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
  kv::Status ReadFlags(const GgufFile& file);

  const Vocabulary vocabulary_;
  std::unique_ptr<TextEncoder> encoder_;
  TokenTrie control_;
  TokenTrie user_defined_;
  bool add_bos_ = false;
  bool adds_space_prefix_ = false;
};

}  // namespace cairn::engine
