// A control store in this process's memory, kept somewhere by a function that it is given.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "kvstore/async/event.h"
#include "kvstore/async/semaphore.h"
#include "kvstore/control/control_state.h"
#include "kvstore/control/control_store.h"
#include "kvstore/io/clock.h"

namespace cairn::kv {

class LocalStore final : public ControlStore {
 public:
  // Makes the bytes survive the process and a power cut, all or nothing: what Open is given again.
  using Keep = std::function<Task<Status>(std::string state)>;

  // `keep` may be null: then nothing survives. `loop` and `clock` must outlive this.
  LocalStore(Loop& loop, Clock& clock, ControlState state, Keep keep);

  Task<Result<Snapshot>> Range(std::string prefix, Instant deadline) override;
  // Answers once the change is kept; when it cannot be kept, it did not happen.
  Task<Result<TransactionOutcome>> Commit(Transaction transaction, Instant deadline) override;
  Task<Result<GrantedLease>> Grant(Nanos ttl, Instant deadline) override;
  Task<Status> KeepAlive(NodeLeaseId lease, Instant deadline) override;
  Task<Status> Revoke(NodeLeaseId lease, Instant deadline) override;
  Task<Result<WatchBatch>> Watch(std::string prefix, int64_t from_revision,
                                 Instant deadline) override;

  // The state as of now: leases that have run out are gone. Change it by calls only.
  ControlState& state();
  // Tells those who watch that the state was changed.
  void Wake();

 private:
  Loop& loop_;
  Clock& clock_;
  const Keep keep_;
  ControlState state_;
  Semaphore writer_;      // One change at a time.
  bool keeping_ = false;  // Meanwhile no lease runs out.
  std::shared_ptr<Event> changed_;  // Shared with those who wait for it; another one each time.
};

}  // namespace cairn::kv
