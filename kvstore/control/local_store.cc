// Applies requests to the state, keeps it, then shows it.
#include "kvstore/control/local_store.h"

#include <algorithm>
#include <utility>

namespace cairn::kv {

LocalStore::LocalStore(Loop& loop, Clock& clock, ControlState state, Keep keep)
    : loop_(loop), clock_(clock), keep_(std::move(keep)), state_(std::move(state)),
      writer_(loop, 1), changed_(std::make_shared<Event>(loop)) {}

ControlState& LocalStore::state() {
  const int64_t before = state_.revision();
  if (!keeping_) state_.Expire(clock_.Now());
  if (state_.revision() != before) Wake();
  return state_;
}

void LocalStore::Wake() { std::exchange(changed_, std::make_shared<Event>(loop_))->Set(); }

Task<Result<Snapshot>> LocalStore::Range(std::string prefix, Instant) {
  co_return state().Range(prefix);
}

Task<Result<TransactionOutcome>> LocalStore::Commit(Transaction transaction, Instant) {
  const Semaphore::Permit permit = co_await writer_.Acquire(1);
  if (keep_ == nullptr) {
    auto outcome = state().Commit(transaction);
    Wake();
    co_return outcome;
  }
  ControlState next = state();
  auto outcome = next.Commit(transaction);
  if (!outcome.ok() || next.revision() == state_.revision()) co_return outcome;
  keeping_ = true;
  const Status kept = co_await keep_(next.Encode());
  keeping_ = false;
  if (!kept.ok()) co_return kept;
  state_ = std::move(next);
  Wake();
  co_return outcome;
}

Task<Result<GrantedLease>> LocalStore::Grant(Nanos ttl, Instant) {
  const Semaphore::Permit permit = co_await writer_.Acquire(1);
  co_return state().Grant(ttl, clock_.Now());
}

Task<Status> LocalStore::KeepAlive(NodeLeaseId lease, Instant) {
  const Semaphore::Permit permit = co_await writer_.Acquire(1);
  co_return state().KeepAlive(lease, clock_.Now());
}

Task<Status> LocalStore::Revoke(NodeLeaseId lease, Instant) {
  const Semaphore::Permit permit = co_await writer_.Acquire(1);
  state().Revoke(lease);
  Wake();
  co_return Status();
}

Task<Result<WatchBatch>> LocalStore::Watch(std::string prefix, int64_t from_revision,
                                           Instant deadline) {
  while (true) {
    const std::shared_ptr<Event> changed = changed_;
    auto batch = state().EventsSince(prefix, from_revision);
    const bool over = !batch.ok() || !batch.value().events.empty() || clock_.Now() >= deadline;
    if (over) co_return batch;
    co_await clock_.SleepUntil(std::min(deadline, state_.next_expiry()), changed.get());
  }
}

}  // namespace cairn::kv
