// Cuts text into the words inside which byte-level BPE merges.
//
// Each kind is defined by published regular expressions (in the .cc, and the oracle in the tests);
// here they are written out by hand: one pass, no backtracking, linear in the text.
#pragma once

#include <string_view>
#include <vector>

#include "kvstore/base/result.h"

namespace cairn::engine {

enum class PreTokenizer {
  kGpt2,
  kSmollm,   // Every digit alone, then as GPT-2.
  kDefault,  // What a file means that names "default" or nothing.
  kLlama3,
  kQwen2,
};

// By the value of tokenizer.ggml.pre. kInvalid for names that we do not know.
kv::Result<PreTokenizer> PreTokenizerByName(std::string_view name);

// Appends to `words`; together they are `text` exactly. Invalid UTF-8 passes as bytes that are
// neither letters nor digits nor spaces.
void SplitWords(PreTokenizer kind, std::string_view text, std::vector<std::string_view>& words);

}  // namespace cairn::engine
