// The text side of a model file: its tokenizer and its chat template, as the core wants them.
#pragma once

#include <memory>

#include "engine/gguf/gguf.h"
#include "engine/serve/text_codec.h"
#include "kvstore/base/result.h"

namespace cairn::engine {

// Needs `file` only during the call. kInvalid for a tokenizer or template that we do not know.
kv::Result<std::unique_ptr<TextCodec>> CreateModelText(const GgufFile& file);

}  // namespace cairn::engine
