// Two shapes of one store; what the driver sees of them is the same client.
#include "tools/replay/replay_store.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>

#include "kvstore/node/embedded/embedded_node.h"
#include "kvstore/remote/remote_client.h"

namespace cairn::tools {
namespace {

using kv::Result;
using kv::Status;

constexpr int64_t kEpochMs = 1'700'000'000'000;
constexpr uint32_t kTtlSeconds = 10 * 365 * 24 * 3600u;
constexpr uint32_t kRunningTtlSeconds = 24 * 3600u;

class FolderStore final : public ReplayStore {
 public:
  Status Start(const FolderStoreOptions& options, kv::Log& log) {
    kv::EmbeddedOptions store;
    store.data_dir = options.data_dir;
    store.targets = options.targets;
    store.poller.engine = options.poller;
    store.target_bytes = kv::AlignDown(options.capacity_bytes / options.targets, kv::kSectorSize);
    store.unix_now = [this] { return kv::UnixMillis{now_.load()}; };
    // Hours pass in seconds, and housekeeping has to keep up.
    store.node.maintenance_interval = kv::Millis(2);
    KV_ASSIGN_OR_RETURN(node_, kv::EmbeddedNode::Start(store, log));
    KV_ASSIGN_OR_RETURN(space_, kv::AttachAndWait(node_->client(), {.name = "replay",
                                                                    .fingerprint = "replay",
                                                                    .ttl_seconds = kTtlSeconds}));
    return Status();
  }

  kv::Client& client() override { return node_->client(); }
  kv::NamespaceId space() const override { return space_; }
  void SetTime(int64_t trace_ms) override { now_ = kEpochMs + trace_ms; }
  Result<kv::StoreStats> Stats() override { return node_->stats(); }
  Status Finish() override { return node_->Stop(); }

 private:
  std::atomic<int64_t> now_{kEpochMs};
  std::unique_ptr<kv::EmbeddedNode> node_;
  kv::NamespaceId space_;
};

class RunningStore final : public ReplayStore {
 public:
  Status Connect(const std::string& address, kv::Log& log) {
    kv::RemoteOptions options;
    options.address = address;
    options.name = "cairn replay";
    KV_ASSIGN_OR_RETURN(remote_, kv::RemoteClient::Connect(options, kv::PollerOptions{}, log));
    name_ = "replay-" + std::to_string(::getpid());
    kv::NamespaceOptions space;
    space.name = name_;
    space.fingerprint = "replay";
    space.ttl_seconds = kRunningTtlSeconds;
    KV_ASSIGN_OR_RETURN(space_, kv::AttachAndWait(remote_->client(), space));
    KV_ASSIGN_OR_RETURN(before_, AskStats());
    return Status();
  }

  kv::Client& client() override { return remote_->client(); }
  kv::NamespaceId space() const override { return space_; }
  void SetTime(int64_t) override {}

  Result<kv::StoreStats> Stats() override {
    KV_ASSIGN_OR_RETURN(kv::StoreStats now, AskStats());
    std::vector<uint64_t> before;
    VisitStats(before_, [&](std::string_view, kv::StatKind, uint64_t value, std::string_view) {
      before.push_back(value);
    });
    size_t at = 0;
    VisitStats(now, [&](std::string_view, kv::StatKind kind, uint64_t& value, std::string_view) {
      if (kind == kv::StatKind::kCounter) value -= before[at];
      ++at;
    });
    return now;
  }

  Status Finish() override {
    Status deleted = remote_->Ask<Status>(
        [this](kv::RemoteStore& store) { return store.DeleteSpace(name_); });
    // A store that cannot delete it lets it expire.
    return deleted.code() == kv::Code::kNotFound ? Status() : deleted;
  }

 private:
  Result<kv::StoreStats> AskStats() {
    return remote_->Ask<Result<kv::StoreStats>>(
        [](kv::RemoteStore& store) { return store.Stats(); });
  }

  std::string name_;
  std::unique_ptr<kv::RemoteClient> remote_;
  kv::NamespaceId space_;
  kv::StoreStats before_;
};

}  // namespace

Result<std::unique_ptr<ReplayStore>> ReplayStore::InFolder(const FolderStoreOptions& options,
                                                           kv::Log& log) {
  // A store in use, or what is no store's. Targets that nobody has locked are taken as they are.
  std::error_code missing;  // Then the folder is made.
  for (const auto& entry : std::filesystem::directory_iterator(options.data_dir, missing)) {
    if (entry.path().filename().string().starts_with("target-")) continue;
    return Status(kv::Code::kInvalid, options.data_dir + " holds " +
                                          entry.path().filename().string() +
                                          ": replay into an empty folder, or a new one");
  }
  auto store = std::make_unique<FolderStore>();
  KV_RETURN_IF_ERROR(store->Start(options, log));
  return std::unique_ptr<ReplayStore>(std::move(store));
}

Result<std::unique_ptr<ReplayStore>> ReplayStore::At(const std::string& address, kv::Log& log) {
  auto store = std::make_unique<RunningStore>();
  KV_RETURN_IF_ERROR(store->Connect(address, log));
  return std::unique_ptr<ReplayStore>(std::move(store));
}

}  // namespace cairn::tools
