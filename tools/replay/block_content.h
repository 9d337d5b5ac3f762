// What a replayed block holds: bytes that follow from its id alone, so that each can be verified.
#pragma once

#include <cstdint>
#include <optional>

#include "kvstore/base/bytes.h"

namespace cairn::tools {

void FillBlock(uint64_t block, kv::MutableByteSpan into);
// Where the first byte differs from what FillBlock writes; none when all are right.
std::optional<size_t> FirstWrongByte(uint64_t block, kv::ByteSpan bytes);

}  // namespace cairn::tools
