// Posts each call to the loop, where a gate holds it until its callback has run.
#include "kvstore/client/client.h"

#include <mutex>
#include <utility>

#include "kvstore/async/handover.h"

namespace cairn::kv {
namespace {

// What a call that came too late gets.
Status Stopped() { return Status(Code::kUnavailable, "the store is stopping"); }

template <typename T>
Task<void> Finish(Task<T> call, std::function<void(T)> done) {
  done(co_await call);
}

}  // namespace

Client::Client(Loop& loop, BlockStore& store) : loop_(loop), store_(store), gate_(loop) {}

Client::~Client() { KV_CHECK(gate_.closed()); }

template <typename T, typename Call>
void Client::Run(Call call, T stopped, Done<T> done) {
  Submit([this, call = std::move(call), stopped = std::move(stopped),
          done = std::move(done)]() mutable {
    if (gate_.closed()) return done(std::move(stopped));
    gate_.Hold(Finish<T>(call(), std::move(done)));
  });
}

void Client::Attach(NamespaceOptions options, Done<Result<NamespaceId>> done) {
  const auto call = [this, options = std::move(options)] { return store_.Attach(options); };
  Run(call, Result<NamespaceId>(Stopped()), std::move(done));
}

void Client::Lookup(NamespaceId space, std::vector<BlockId> chain, LeaseOrder lease,
                    Done<Result<ChainHit>> done) {
  auto call = [this, space, chain = std::move(chain), lease]() mutable {
    return store_.Lookup(space, std::move(chain), lease);
  };
  Run(std::move(call), Result<ChainHit>(Stopped()), std::move(done));
}

void Client::LookupEach(NamespaceId space, std::vector<BlockId> chain, uint32_t first,
                        LeaseOrder lease, Done<Result<EachHit>> done) {
  auto call = [this, space, chain = std::move(chain), first, lease]() mutable {
    return store_.LookupEach(space, std::move(chain), first, lease);
  };
  Run(std::move(call), Result<EachHit>(Stopped()), std::move(done));
}

void Client::Renew(std::vector<LeaseId> leases, LeaseOrder order, Done<Statuses> done) {
  Statuses stopped(leases.size(), Stopped());
  auto call = [this, leases = std::move(leases), order]() mutable {
    return store_.Renew(std::move(leases), order);
  };
  Run(std::move(call), std::move(stopped), std::move(done));
}

void Client::Release(std::vector<LeaseId> leases, SessionId session, Done<Status> done) {
  auto call = [this, leases = std::move(leases), session]() mutable {
    return store_.Release(std::move(leases), session);
  };
  Run(std::move(call), Stopped(), std::move(done));
}

void Client::Get(NamespaceId space, std::vector<BlockId> chain, std::vector<BlockRead> reads,
                 Instant deadline, Done<std::vector<BlockReadResult>> done) {
  std::vector<BlockReadResult> stopped(reads.size());
  for (BlockReadResult& result : stopped) result.status = Stopped();
  auto call = [this, space, chain = std::move(chain), reads = std::move(reads),
               deadline]() mutable {
    return store_.Get(space, std::move(chain), std::move(reads), deadline);
  };
  Run(std::move(call), std::move(stopped), std::move(done));
}

void Client::Put(ChainPut put, Done<Statuses> done) {
  Statuses stopped(put.blocks.size(), Stopped());
  auto call = [this, put = std::move(put)]() mutable { return store_.Put(std::move(put)); };
  Run(std::move(call), std::move(stopped), std::move(done));
}

void Client::Touch(NamespaceId space, std::vector<BlockId> chain, uint32_t first,
                   UnixMillis keep_until, Done<Statuses> done) {
  Statuses stopped(chain.size() > first ? chain.size() - first : 0, Stopped());
  auto call = [this, space, chain = std::move(chain), first, keep_until]() mutable {
    return store_.Touch(space, std::move(chain), first, keep_until);
  };
  Run(std::move(call), std::move(stopped), std::move(done));
}

void Client::Delete(NamespaceId space, std::vector<BlockId> chain, uint32_t first,
                    Done<Status> done) {
  auto call = [this, space, chain = std::move(chain), first]() mutable {
    return store_.Delete(space, std::move(chain), first);
  };
  Run(std::move(call), Stopped(), std::move(done));
}

Task<void> Client::Stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  return gate_.Close();
}

void Client::Submit(std::function<void()> step) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopped_) return loop_.Post(std::move(step));
  }
  step();
}

Result<NamespaceId> AttachAndWait(Client& client, NamespaceOptions options) {
  Handover<Result<NamespaceId>> answer;
  client.Attach(std::move(options),
                [&answer](Result<NamespaceId> result) { answer.Give(std::move(result)); });
  return answer.Wait();
}

}  // namespace cairn::kv
