// Turns text into tokens, one way per kind of vocabulary. No control token ever comes out.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "engine/api/token.h"
#include "engine/gguf/gguf.h"
#include "engine/tokens/vocabulary.h"
#include "kvstore/base/result.h"

namespace cairn::engine {

// Thread-safe: encoding changes nothing.
class TextEncoder {
 public:
  virtual ~TextEncoder() = default;

  // Appends the tokens of `text`, in time near-linear in its length whatever it holds.
  virtual void Encode(std::string_view text, std::vector<TokenId>& tokens) const = 0;
};

// `vocabulary` must outlive the result. kInvalid for merges that make no sense.
kv::Result<std::unique_ptr<TextEncoder>> MakeBytePairEncoder(const GgufFile& file,
                                                             const Vocabulary& vocabulary);

// `add_space_prefix`: a text is encoded as if a space stood before it.
std::unique_ptr<TextEncoder> MakeSentencePieceEncoder(const Vocabulary& vocabulary,
                                                      bool add_space_prefix);

}  // namespace cairn::engine
