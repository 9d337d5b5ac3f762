// Runs a poller's loop with a RemoteStore on one thread; connecting and stopping happen there, too.
#include "kvstore/remote/remote_client.h"

#include <atomic>
#include <mutex>

#include "kvstore/async/handover.h"
#include "kvstore/os/system_clock.h"
#include "kvstore/os/thread_pool.h"

namespace cairn::kv {
namespace {

using StoreCall = std::function<Task<void>(RemoteStore&)>;

Task<void> RunCall(StoreCall call, RemoteStore& store, Handover<bool>& done) {
  Task<void> task = call(store);
  co_await task;
  done.Give(true);
}

}  // namespace

class RemoteClient::Core {
 public:
  Core(RemoteOptions options, PollerOptions poller, Log& log)
      : options_(std::move(options)), poller_options_(poller), log_(log), thread_(1) {}

  Status Start() {
    Handover<Status> opened;
    thread_.Run([this, &opened] { Live(opened); });
    return opened.Wait();
  }

  void Stop() {
    if (stopped_) return;
    stopped_ = true;
    stop_ = true;
    loop_.Post([] {});
    (void)ended_.Wait();
  }

  void Run(StoreCall call) {
    Handover<bool> done;
    loop_.Post([this, &call, &done] { calls_.Hold(RunCall(std::move(call), *store_, done)); });
    (void)done.Wait();
  }

  Client& client() { return *client_; }

 private:
  // The whole life of the connection, on its thread.
  void Live(Handover<Status>& opened) {
    Status status = Open();
    const bool open = status.ok();
    opened.Give(std::move(status));
    if (!open) return;
    poller_->Run(stop_);
    Task<void> refusing = client_->Stop();
    Task<void> leaving = calls_.Close();
    poller_->Await(store_->Stop());
    poller_->Await(std::move(refusing));
    poller_->Await(std::move(leaving));
    loop_.RunReady();
    // The client stays, for calls that come too late.
    store_.reset();
    clock_.reset();
    poller_.reset();
    ended_.Give(true);
  }

  Status Open() {
    KV_ASSIGN_OR_RETURN(poller_, Poller::Create(loop_, log_, poller_options_));
    clock_.emplace(*poller_);
    const RemoteParts parts{.poller = *poller_, .clock = *clock_, .log = log_};
    KV_ASSIGN_OR_RETURN(store_, poller_->Await(RemoteStore::Connect(parts, options_)));
    client_ = std::make_unique<Client>(loop_, *store_);
    return Status();
  }

  const RemoteOptions options_;
  const PollerOptions poller_options_;
  Log& log_;
  std::atomic<bool> stop_{false};
  bool stopped_ = false;
  Handover<bool> ended_;
  Loop loop_;
  Gate calls_{loop_};
  std::unique_ptr<Poller> poller_;
  std::optional<SystemClock> clock_;
  std::unique_ptr<RemoteStore> store_;
  std::unique_ptr<Client> client_;
  ThreadPool thread_;  // The last: ends before what it uses.
};

RemoteClient::RemoteClient(std::unique_ptr<Core> core) : core_(std::move(core)) {}
RemoteClient::~RemoteClient() { Stop(); }

Result<std::unique_ptr<RemoteClient>> RemoteClient::Connect(RemoteOptions options,
                                                            PollerOptions poller, Log& log) {
  auto core = std::make_unique<Core>(std::move(options), poller, log);
  KV_RETURN_IF_ERROR(core->Start());
  return std::unique_ptr<RemoteClient>(new RemoteClient(std::move(core)));
}

Client& RemoteClient::client() { return core_->client(); }
void RemoteClient::Stop() { core_->Stop(); }
void RemoteClient::Run(StoreCall call) { core_->Run(std::move(call)); }

Result<MutableByteSpan> RemoteClient::NewRegion(uint64_t size) {
  return Ask<Result<MutableByteSpan>>([size](RemoteStore& store) { return store.NewRegion(size); });
}
Status RemoteClient::FreeRegion(MutableByteSpan region) {
  return Ask<Status>([region](RemoteStore& store) { return store.FreeRegion(region); });
}
RemoteStats RemoteClient::stats() {
  RemoteStats stats;
  Run([&stats](RemoteStore& store) -> Task<void> {
    stats = store.remote_stats();
    return Done();
  });
  return stats;
}

Task<void> RemoteClient::Done() { co_return; }

}  // namespace cairn::kv
