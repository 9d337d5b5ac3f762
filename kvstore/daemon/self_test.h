// One block put, found, read, verified and deleted, before anyone else comes.
#pragma once

#include "kvstore/async/task.h"
#include "kvstore/base/status.h"
#include "kvstore/client/store_admin.h"

namespace cairn::kv {

// In a namespace of its own, `cairnd.self-test`, which is gone afterwards. A failure says which
// step failed and why. `targets` of the store decide the shape; loop thread only.
Task<Status> SelfTest(BlockStore& store, StoreAdmin& admin, uint32_t targets);

}  // namespace cairn::kv
