// A store in another process for threads: a RemoteStore on a thread of its own.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "kvstore/client/client.h"
#include "kvstore/remote/remote_store.h"

namespace cairn::kv {

// Thread-safe, except that Stop must not run beside other calls of this class.
class RemoteClient {
 public:
  // Starts the thread, connects and returns. Errors as of RemoteStore::Connect. `log` must outlive
  // the result.
  static Result<std::unique_ptr<RemoteClient>> Connect(RemoteOptions options,
                                                       PollerOptions poller, Log& log);
  // Stops it, if Stop was not called.
  ~RemoteClient();

  Client& client();

  // These wait; never from a callback. Contracts as of RemoteStore.
  Result<MutableByteSpan> NewRegion(uint64_t size);
  Status FreeRegion(MutableByteSpan region);
  RemoteStats stats();

  // Runs `call` on the store's thread with the store, and waits until its task is done: for the
  // verbs of StoreAdmin. Never from a callback.
  template <typename T>
  T Ask(std::function<Task<T>(RemoteStore&)> call) {
    std::optional<T> answer;
    Run([&](RemoteStore& store) -> Task<void> { return Keep(call(store), answer); });
    return std::move(*answer);
  }

  // Fails what is in flight with kUnavailable, and ends the thread. Once.
  void Stop();

 private:
  class Core;
  explicit RemoteClient(std::unique_ptr<Core> core);
  // On the store's thread; returns when the task is done.
  void Run(std::function<Task<void>(RemoteStore&)> call);
  static Task<void> Done();
  template <typename T>
  static Task<void> Keep(Task<T> task, std::optional<T>& answer) {
    answer.emplace(co_await task);
  }
  std::unique_ptr<Core> core_;
};

}  // namespace cairn::kv
