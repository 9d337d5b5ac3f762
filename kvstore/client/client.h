// The thread-safe face of a BlockStore: submit from any thread, hear of completion by callback.
//
// Calls are queued to the store's loop. Callbacks run on that loop's thread: they must be short and
// must not block. All memory named in a call stays the caller's and must live until its callback.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
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

  void Attach(NamespaceOptions options, std::function<void(Result<NamespaceId>)> done);
  void Lookup(NamespaceId space, std::vector<BlockId> chain,
              std::function<void(Result<ChainHit>)> done);
  void Get(NamespaceId space, std::vector<BlockId> chain, std::vector<BlockRead> reads,
           Instant deadline, std::function<void(std::vector<BlockReadResult>)> done);
  void Put(ChainPut put, std::function<void(std::vector<Status>)> done);

  // Loop thread. Refuses later calls with kUnavailable and resolves when none is in flight. Run the
  // loop once more after it: calls that were submitted before may still wait in its queue.
  Task<void> Stop();

 private:
  // Runs `call` on the loop, or at once when the client has stopped: it finds the gate closed.
  void Submit(std::function<void()> call);

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
