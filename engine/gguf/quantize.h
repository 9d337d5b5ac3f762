// Packs rows of floats into a tensor type, and plainly unpacks them again.
//
// For writing models and for tests: simple and exact about the format, not fast. The kernels that
// compute with packed rows are elsewhere, and are tested against UnpackRow.
#pragma once

#include <span>

#include "engine/gguf/gguf.h"
#include "kvstore/base/bytes.h"

namespace cairn::engine {

// `values.size()` is a multiple of BlockValues(type), and `packed` has RowBytes of it.
void PackRow(TensorType type, std::span<const float> values, kv::MutableByteSpan packed);
void UnpackRow(TensorType type, kv::ByteSpan packed, std::span<float> values);

}  // namespace cairn::engine
