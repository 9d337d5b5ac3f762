// Turns tokens into text as they are generated, never showing a part of a character.
#pragma once

#include <string>

#include "engine/api/token.h"
#include "engine/tokens/tokenizer.h"

namespace cairn::engine {

// One per generated text. Bytes that can no longer become a character come out as U+FFFD, so that
// what is emitted is always valid UTF-8, and the same however the tokens cut it.
class StreamDecoder {
 public:
  // `tokenizer` must outlive this.
  explicit StreamDecoder(const Tokenizer& tokenizer)
      : tokenizer_(tokenizer), drop_space_(tokenizer.adds_space_prefix()) {}

  // The characters that `id` completes; often none.
  std::string Push(TokenId id);
  // What is left when the text ends: an unfinished character as one U+FFFD, else nothing.
  std::string Finish();

 private:
  const Tokenizer& tokenizer_;
  bool drop_space_;      // Until the first byte: a leading space is not of the text.
  std::string pending_;  // At most 3 bytes: the beginning of a character.
};

}  // namespace cairn::engine
