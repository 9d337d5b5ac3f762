// Random bytes of the kernel, for seeds and for secrets.
#pragma once

#include "kvstore/base/bytes.h"

namespace cairn::kv {

// May block early after boot, never later.
void FillFromKernel(MutableByteSpan target);

}  // namespace cairn::kv
