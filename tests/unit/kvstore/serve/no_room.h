// A full store from which nothing can be evicted.
#pragma once

#include "kvstore/client/striped_store.h"

namespace cairn::kv {

class NoRoom final : public SpaceKeeper {
 public:
  Task<Status> MakeRoom(uint64_t) override { co_return Status(Code::kNoSpace, "full"); }
};

}  // namespace cairn::kv
