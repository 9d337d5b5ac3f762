// Each call draws its fate, then touches the one state.
#include "tests/sim/sim_control_store.h"

#include <algorithm>
#include <utility>

namespace cairn::sim {

using kv::Code;
using kv::Instant;
using kv::Nanos;
using kv::Result;
using kv::Status;
using kv::Task;

class SimControl::Client final : public kv::ControlStore {
 public:
  Client(SimControl& control, uint32_t id, kv::Clock& clock)
      : control_(control), id_(id), clock_(clock) {}

  Task<Result<kv::Snapshot>> Range(std::string prefix, Instant deadline) override {
    std::function<Result<kv::Snapshot>()> act = [this, prefix] {
      return Result<kv::Snapshot>(control_.state().Range(prefix));
    };
    return Call(std::move(act), deadline);
  }

  Task<Result<kv::TransactionOutcome>> Commit(kv::Transaction transaction,
                                              Instant deadline) override {
    std::function<Result<kv::TransactionOutcome>()> act = [this, transaction] {
      auto outcome = control_.state().Commit(transaction);
      const bool done = outcome.ok() && outcome.value().succeeded;
      if (done && control_.on_commit_) control_.on_commit_(id_, transaction);
      return outcome;
    };
    return Call(std::move(act), deadline);
  }

  Task<Result<kv::GrantedLease>> Grant(Nanos ttl, Instant deadline) override {
    std::function<Result<kv::GrantedLease>()> act = [this, ttl] {
      return Result<kv::GrantedLease>(control_.state().Grant(ttl, control_.clock_.Now()));
    };
    return Call(std::move(act), deadline);
  }

  Task<Status> KeepAlive(kv::NodeLeaseId lease, Instant deadline) override {
    std::function<Result<bool>()> act = [this, lease]() -> Result<bool> {
      KV_RETURN_IF_ERROR(control_.state().KeepAlive(lease, control_.clock_.Now()));
      return true;
    };
    auto kept = co_await Call(std::move(act), deadline);
    co_return kept.ok() ? Status() : kept.status();
  }

  Task<Status> Revoke(kv::NodeLeaseId lease, Instant deadline) override {
    std::function<Result<bool>()> act = [this, lease]() -> Result<bool> {
      control_.state().Revoke(lease);
      return true;
    };
    auto revoked = co_await Call(std::move(act), deadline);
    co_return revoked.ok() ? Status() : revoked.status();
  }

  // Looks again and again: so an outage needs no watchers to be told.
  Task<Result<kv::WatchBatch>> Watch(std::string prefix, int64_t from_revision,
                                     Instant deadline) override {
    while (true) {
      if (control_.Reaches(id_)) {
        auto batch = control_.state().EventsSince(prefix, from_revision);
        const bool over =
            !batch.ok() || !batch.value().events.empty() || clock_.Now() >= deadline;
        if (over) co_return batch;
      } else if (clock_.Now() >= deadline) {
        co_return Status(Code::kDeadline, "no answer in time");
      }
      const Instant next = clock_.Now() + kv::Millis(100);
      co_await clock_.SleepUntil(std::min(deadline, next), nullptr);
    }
  }

 private:
  template <typename T>
  Task<Result<T>> Call(std::function<Result<T>()> act, Instant deadline) {
    co_await clock_.SleepUntil(clock_.Now() + control_.Latency(), nullptr);
    const ControlFaults& faults = control_.faults_;
    const bool late = control_.random_.Chance(faults.request_late, 1'000'000);
    const bool lost = control_.random_.Chance(faults.request_lost, 1'000'000);
    const bool unheard = control_.random_.Chance(faults.answer_lost, 1'000'000);
    if (late) ActLater(act);
    if (late || lost || !control_.Reaches(id_)) co_return co_await Silence<T>(deadline);
    Result<T> result = act();
    co_await clock_.SleepUntil(clock_.Now() + control_.Latency(), nullptr);
    if (unheard || !control_.Reaches(id_)) co_return co_await Silence<T>(deadline);
    co_return result;
  }

  template <typename T>
  void ActLater(std::function<Result<T>()> act) {
    const auto delay = static_cast<int64_t>(control_.random_.Below(10'000));
    control_.clock_.At(control_.clock_.Now() + kv::Millis(delay), [this, act] {
      if (!control_.down_) (void)act();
    });
  }

  // A refused connection is seen at once, a lost packet at the deadline.
  template <typename T>
  Task<Result<T>> Silence(Instant deadline) {
    if (control_.random_.Chance(1, 2)) co_return Status(Code::kUnavailable, "not reachable");
    co_await clock_.SleepUntil(deadline, nullptr);
    co_return Status(Code::kDeadline, "no answer in time");
  }

  SimControl& control_;
  const uint32_t id_;
  kv::Clock& clock_;
};

SimControl::SimControl(SimClock& clock, uint64_t seed) : clock_(clock), random_(seed) {}
SimControl::~SimControl() = default;

kv::ControlStore& SimControl::ClientOf(uint32_t id, kv::Clock& node_clock) {
  std::unique_ptr<Client>& client = clients_[id];
  if (client == nullptr) client = std::make_unique<Client>(*this, id, node_clock);
  return *client;
}

void SimControl::ComeBack(Leases leases) {
  down_ = false;
  if (leases == Leases::kRenewed) state_.RenewAll(clock_.Now());
}

kv::ControlState& SimControl::state() {
  if (!down_) state_.Expire(clock_.Now());
  return state_;
}

Nanos SimControl::Latency() {
  return kv::Micros(static_cast<int64_t>(200 + random_.Below(3'000)));
}

}  // namespace cairn::sim
