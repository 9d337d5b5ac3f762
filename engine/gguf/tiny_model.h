// Makes a small llama-family model with random weights, for when no real one is to be had.
//
// It is complete (tokenizer, chat template, weights) and the same bytes for the same options on
// every machine. What it generates is nonsense made of English words.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/gguf/gguf.h"
#include "engine/gguf/gguf_writer.h"
#include "kvstore/base/result.h"

namespace cairn::engine {

struct TinyModelOptions {
  uint64_t seed = 1;
  TensorType weights = TensorType::kQ8_0;  // Of all matrices; norms are F32.
  uint32_t layers = 4;
  uint32_t hidden = 128;  // Row lengths must suit `weights`: multiples of 256 for K types.
  uint32_t feed_forward = 384;
  uint32_t heads = 4;
  uint32_t kv_heads = 2;
  uint32_t context = 2048;
  bool tied_output = false;  // The output matrix is the embedding (no output.weight).
};

// The control tokens that every tiny model has, at the start of its vocabulary.
inline constexpr uint32_t kTinyEndOfText = 0;
inline constexpr uint32_t kTinyTurnStart = 1;  // <|im_start|>, also the bos token (never added).
inline constexpr uint32_t kTinyTurnEnd = 2;    // <|im_end|>, the eos token.

// Only the tokenizer's metadata and the chat template: what a test of text needs.
void AddTinyTokenizer(GgufWriter& writer);

// kInvalid when the numbers do not fit one another.
kv::Result<GgufWriter> MakeTinyModel(const TinyModelOptions& options);

}  // namespace cairn::engine
