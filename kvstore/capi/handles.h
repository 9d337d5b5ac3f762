// What the opaque handles of cairn.h are, and how its types become ours.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "kvstore/base/log.h"
#include "kvstore/capi/cairn.h"
#include "kvstore/os/event_fd.h"
#include "kvstore/remote/remote_client.h"

// Thread-safe.
struct cairn_queue {
 public:
  explicit cairn_queue(std::unique_ptr<cairn::kv::EventFd> ready) : ready_(std::move(ready)) {}

  void Add(uint64_t tag, const cairn::kv::Status& outcome);
  size_t Take(cairn_completion* completions, size_t max, int timeout_ms);
  int fd() const { return ready_->fd(); }

 private:
  size_t TakeNow(cairn_completion* completions, size_t max);

  std::mutex mutex_;
  // Protected by mutex_; ready_ is signalled while it is not empty.
  std::deque<cairn_completion> waiting_;
  std::unique_ptr<cairn::kv::EventFd> ready_;
};

struct cairn_store {
  cairn::kv::NullLog log;  // Problems reach the caller as codes and messages.
  std::unique_ptr<cairn::kv::RemoteClient> client;
  uint32_t call_timeout_ms = 0;
};

namespace cairn::kv {

cairn_code CodeOf(const Status& status);
// Cut to `size` bytes, always ended. Does nothing without room.
void CopyMessage(std::string_view text, char* message, size_t size);

// What the caller gave of a structure; zero in fields that it does not know. False: no size.
template <typename T>
bool CopyKnown(const T* given, T& copy) {
  copy = T();
  if (given == nullptr || given->struct_size < sizeof(size_t)) return false;
  std::memcpy(&copy, given, std::min(given->struct_size, sizeof(T)));
  return true;
}

cairn_id ToC(const Id128& id);
Id128 FromC(const cairn_id& id);
std::vector<BlockId> IdsOf(const cairn_chain& chain);

}  // namespace cairn::kv
