// The thread-safe face of a BlockStore: submit from any thread, hear of completion by callback.
//
// Calls are queued to the store's loop. Callbacks run on that loop's thread: they must be short and
// must not block. All memory named in a call stays the caller's and must live until its callback.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "kvstore/async/gate.h"
#include "kvstore/async/loop.h"
#include "kvstore/client/block_store.h"

namespace cairn::kv {

class Client {
 public:
  // Both must outlive the client. Call on any thread.
  Client(Loop& loop, BlockStore& store);
  // Stop() must have been called, on the loop's thread, and awaited.
  ~Client();

  // What each call hands over to its callback, once, on the loop's thread.
  template <typename T>
  using Done = std::function<void(T)>;
  using Statuses = std::vector<Status>;

  // The verbs of block_store.h. After Stop: kUnavailable, in every place of a vector.
  void Attach(NamespaceOptions options, Done<Result<NamespaceId>> done);
  void Lookup(NamespaceId space, std::vector<BlockId> chain, Done<Result<ChainHit>> done) {
    Lookup(space, std::move(chain), LeaseOrder(), std::move(done));
  }
  void Lookup(NamespaceId space, std::vector<BlockId> chain, LeaseOrder lease,
              Done<Result<ChainHit>> done);
  void LookupEach(NamespaceId space, std::vector<BlockId> chain, uint32_t first, LeaseOrder lease,
                  Done<Result<EachHit>> done);
  void Renew(std::vector<LeaseId> leases, LeaseOrder order, Done<Statuses> done);
  void Release(std::vector<LeaseId> leases, SessionId session, Done<Status> done);
  void Get(NamespaceId space, std::vector<BlockId> chain, std::vector<BlockRead> reads,
           Instant deadline, Done<std::vector<BlockReadResult>> done);
  void Put(ChainPut put, Done<Statuses> done);
  void Touch(NamespaceId space, std::vector<BlockId> chain, uint32_t first, UnixMillis keep_until,
             Done<Statuses> done);
  void Delete(NamespaceId space, std::vector<BlockId> chain, uint32_t first, Done<Status> done);

  // Loop thread. Refuses later calls with kUnavailable and resolves when none is in flight. Run the
  // loop once more after it: calls that were submitted before may still wait in its queue.
  Task<void> Stop();

 private:
  // Calls `call` on the loop and holds its task until `done` has run; or hands over `stopped`.
  template <typename T, typename Call>
  void Run(Call call, T stopped, Done<T> done);
  // Runs `step` on the loop, or at once when the client has stopped: it finds the gate closed.
  void Submit(std::function<void()> step);

  Loop& loop_;
  BlockStore& store_;
  std::mutex mutex_;
  bool stopped_ = false;  // Protected by mutex_.
  Gate gate_;             // Loop thread only, until it is closed.
};

// A blocking call for threads that have nothing else to do: waits for the callback.
// Never call it on the loop's thread.
Result<NamespaceId> AttachAndWait(Client& client, NamespaceOptions options);

}  // namespace cairn::kv
