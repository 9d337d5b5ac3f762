// On the store's thread: the server, and a task that samples once an interval. Pages read samples.
#include "kvstore/daemon/store_service.h"

#include <mutex>
#include <optional>
#include <utility>

#include "kvstore/async/gate.h"
#include "kvstore/config/version.h"
#include "kvstore/daemon/certificates.h"
#include "kvstore/daemon/etcd_cluster.h"
#include "kvstore/daemon/self_test.h"
#include "kvstore/metrics/endurance.h"
#include "kvstore/metrics/metered_store.h"
#include "kvstore/node/node_admin.h"

namespace cairn::kv {
namespace {

constexpr Nanos kSilenceMax = Seconds(10);
constexpr const char* kOpening = "opening the targets\n";

}  // namespace

class StoreService::Core {
 public:
  Core(StoreServiceOptions options, Log& log) : options_(std::move(options)), log_(log) {}

  Status Start(const Parts& parts) {
    parts_.emplace(parts);
    admin_.emplace(parts.node);
    metered_.emplace(parts.node.striped(), parts.clock);
    start_unix_ = parts.clock.UnixNow();
    if (options_.self_test && options_.cluster == nullptr) {
      const auto targets = static_cast<uint32_t>(parts.node.targets().size());
      KV_RETURN_IF_ERROR(parts.poller.Await(SelfTest(parts.node.store(), *admin_, targets)));
      log_.Info("self-test passed: a block was put, read, verified and deleted");
    }
    EtcdCluster* const cluster = options_.cluster;
    const ServerParts server_parts{.poller = parts.poller,
                                   .clock = parts.clock,
                                   .log = log_,
                                   .store = *metered_,
                                   .sessions = parts.node.striped(),
                                   .admin = &*admin_,
                                   .cluster = cluster != nullptr ? &cluster->admin() : nullptr,
                                   .network = parts.node.payload_memory()};
    KV_ASSIGN_OR_RETURN(server_, Server::Start(server_parts, options_.server));
    tcp_port_ = server_->tcp_port();
    stopping_.emplace(parts.poller.loop());
    background_.emplace(parts.poller.loop());
    parts.poller.Await(Sample());
    background_->Hold(KeepSampling());
    return Status();
  }

  Task<void> Stop() {
    stopping_->Set();
    co_await background_->Close();
    Server& server = *server_;
    co_await server.Stop();
    server_.reset();
    const std::lock_guard lock(mutex_);
    phase_ = Phase::kStopped;
  }

  HttpAnswer MetricsPage() const {
    MetricsSnapshot snapshot;
    {
      const std::lock_guard lock(mutex_);
      if (phase_ == Phase::kOpening) return {503, kOpening};
      snapshot = last_;
    }
    return {200, MetricsText(snapshot)};
  }

  HttpAnswer HealthPage() const {
    const std::lock_guard lock(mutex_);
    return Health();
  }

  HttpAnswer ReadyPage() const {
    const std::lock_guard lock(mutex_);
    if (phase_ == Phase::kOpening) return {503, kOpening};
    if (phase_ == Phase::kServing && last_.cluster) {
      const std::string why = last_.cluster->WhyNotReady();
      if (!why.empty()) return {503, why + "\n"};
    }
    return Health();
  }

  uint16_t tcp_port() const { return tcp_port_; }

 private:
  enum class Phase : uint8_t { kOpening, kServing, kStopped };

  // REQUIRES: mutex_ is held.
  HttpAnswer Health() const {
    if (phase_ == Phase::kOpening) return {200, kOpening};
    if (phase_ == Phase::kStopped) return {503, "stopped\n"};
    if (Poller::Now() - sampled_at_ > kSilenceMax) {
      return {503, "the store's thread has not answered for ten seconds\n"};
    }
    return {200, "ok\n"};
  }

  Task<void> KeepSampling() {
    while (!stopping_->is_set()) {
      co_await parts_->clock.SleepUntil(parts_->clock.Now() + options_.sample_interval,
                                        &*stopping_);
      if (!stopping_->is_set()) co_await Sample();
    }
  }

  Task<void> Sample() {
    MetricsSnapshot now;
    StoreAdmin& admin = *admin_;
    const Result<StoreStats> stats = co_await admin.Stats();
    if (stats.ok()) now.store = stats.value();
    Result<std::vector<TargetInfo>> targets = co_await admin.ListTargets();
    if (targets.ok()) now.targets = std::move(targets).value();
    Result<std::vector<SpaceInfo>> spaces = co_await admin.ListSpaces();
    if (spaces.ok()) now.spaces = std::move(spaces).value();
    const Result<MaintenanceStatus> scrub = co_await admin.ScrubStatus();
    if (scrub.ok()) now.scrub = scrub.value();
    const Result<MaintenanceStatus> repair = co_await admin.RepairStatus();
    if (repair.ok()) now.repair = repair.value();
    now.server = server_->stats();
    now.calls = metered_->metered_stats();
    endurance_.Note(parts_->clock.Now(), now.store.bytes_appended);
    now.endurance = MetricsSnapshot::Endurance{
        .bytes_per_day = endurance_.BytesPerDay(),
        .rated_drive_writes_per_day = options_.rated_drive_writes_per_day};
    now.process = MetricsSnapshot::Process{
        .version = kVersion,
        .poller = std::string(parts_->poller.engine_name()),
        .start_unix_seconds = static_cast<double>(start_unix_.value) / 1e3};
    if (options_.cluster != nullptr) {
      now.cluster = options_.cluster->view();
      now.transport = options_.cluster->transport_stats();
    }
    if (options_.certificates != nullptr) {
      for (Certificates::End& end : options_.certificates->Ends()) {
        now.certificate_ends.push_back({std::move(end.use), end.ends_at});
      }
    }
    const std::lock_guard lock(mutex_);
    last_ = std::move(now);
    sampled_at_ = Poller::Now();
    phase_ = Phase::kServing;
  }

  const StoreServiceOptions options_;
  Log& log_;

  // The store's thread only.
  std::optional<Parts> parts_;
  std::optional<NodeAdmin> admin_;
  std::optional<MeteredStore> metered_;
  std::unique_ptr<Server> server_;
  std::optional<Event> stopping_;
  std::optional<Gate> background_;
  EnduranceMeter endurance_;
  UnixMillis start_unix_;
  uint16_t tcp_port_ = 0;  // Constant once Start is done.

  mutable std::mutex mutex_;
  Phase phase_ = Phase::kOpening;  // Protected by mutex_, as are those below.
  MetricsSnapshot last_;
  Instant sampled_at_;
};

StoreService::StoreService(StoreServiceOptions options, Log& log)
    : core_(std::make_unique<Core>(std::move(options), log)) {}
StoreService::~StoreService() = default;

Status StoreService::Start(const Parts& parts) { return core_->Start(parts); }
Task<void> StoreService::Stop() { return core_->Stop(); }
HttpAnswer StoreService::MetricsPage() const { return core_->MetricsPage(); }
HttpAnswer StoreService::HealthPage() const { return core_->HealthPage(); }
HttpAnswer StoreService::ReadyPage() const { return core_->ReadyPage(); }
uint16_t StoreService::tcp_port() const { return core_->tcp_port(); }

}  // namespace cairn::kv
