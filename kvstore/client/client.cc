// Posts each call to the loop, where a gate holds it until its callback has run.
#include "kvstore/client/client.h"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

namespace cairn::kv {
namespace {

using AttachDone = std::function<void(Result<NamespaceId>)>;
using LookupDone = std::function<void(Result<ChainHit>)>;
using GetDone = std::function<void(std::vector<BlockReadResult>)>;
using PutDone = std::function<void(std::vector<Status>)>;

// What a call that came too late gets.
Status Stopped() { return Status(Code::kUnavailable, "the store is stopping"); }

Task<void> RunAttach(BlockStore& store, NamespaceOptions options, AttachDone done) {
  done(co_await store.Attach(std::move(options)));
}

Task<void> RunLookup(BlockStore& store, NamespaceId space, std::vector<BlockId> chain,
                     LookupDone done) {
  done(co_await store.Lookup(space, std::move(chain)));
}

Task<void> RunGet(BlockStore& store, NamespaceId space, std::vector<BlockId> chain,
                  std::vector<BlockRead> reads, Instant deadline, GetDone done) {
  done(co_await store.Get(space, std::move(chain), std::move(reads), deadline));
}

Task<void> RunPut(BlockStore& store, ChainPut put, PutDone done) {
  done(co_await store.Put(std::move(put)));
}

}  // namespace

Client::Client(Loop& loop, BlockStore& store) : loop_(loop), store_(store), gate_(loop) {}

Client::~Client() { KV_CHECK(gate_.closed()); }

void Client::Attach(NamespaceOptions options, AttachDone done) {
  Submit([this, options = std::move(options), done = std::move(done)]() mutable {
    if (gate_.closed()) return done(Stopped());
    gate_.Hold(RunAttach(store_, std::move(options), std::move(done)));
  });
}

void Client::Lookup(NamespaceId space, std::vector<BlockId> chain, LookupDone done) {
  Submit([this, space, chain = std::move(chain), done = std::move(done)]() mutable {
    if (gate_.closed()) return done(Stopped());
    gate_.Hold(RunLookup(store_, space, std::move(chain), std::move(done)));
  });
}

void Client::Get(NamespaceId space, std::vector<BlockId> chain, std::vector<BlockRead> reads,
                 Instant deadline, GetDone done) {
  Submit([this, space, chain = std::move(chain), reads = std::move(reads), deadline,
          done = std::move(done)]() mutable {
    if (gate_.closed()) return done(std::vector<BlockReadResult>(reads.size(), {Stopped(), 0}));
    gate_.Hold(
        RunGet(store_, space, std::move(chain), std::move(reads), deadline, std::move(done)));
  });
}

void Client::Put(ChainPut put, PutDone done) {
  Submit([this, put = std::move(put), done = std::move(done)]() mutable {
    if (gate_.closed()) return done(std::vector<Status>(put.blocks.size(), Stopped()));
    gate_.Hold(RunPut(store_, std::move(put), std::move(done)));
  });
}

Task<void> Client::Stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  return gate_.Close();
}

void Client::Submit(std::function<void()> call) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopped_) return loop_.Post(std::move(call));
  }
  call();
}

Result<NamespaceId> AttachAndWait(Client& client, NamespaceOptions options) {
  std::mutex mutex;
  std::condition_variable arrived;
  std::optional<Result<NamespaceId>> answer;
  client.Attach(std::move(options), [&](Result<NamespaceId> result) {
    const std::lock_guard lock(mutex);
    answer.emplace(std::move(result));
    arrived.notify_one();
  });
  std::unique_lock lock(mutex);
  arrived.wait(lock, [&] { return answer.has_value(); });
  return std::move(*answer);
}

}  // namespace cairn::kv
