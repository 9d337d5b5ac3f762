// A token of some model's vocabulary.
#pragma once

#include <cstdint>

namespace cairn::engine {

// An index into the vocabulary. Plain, since spans of them are what every kernel and hash eats.
using TokenId = uint32_t;

}  // namespace cairn::engine
