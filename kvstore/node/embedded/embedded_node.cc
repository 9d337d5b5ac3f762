// Runs the poller's loop on one thread; opening and stopping happen there, too.
#include "kvstore/node/embedded/embedded_node.h"

#include <sys/random.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <mutex>
#include <optional>
#include <utility>

#include "kvstore/async/handover.h"
#include "kvstore/node/embedded/folder_media.h"
#include "kvstore/os/system_clock.h"
#include "kvstore/os/thread_pool.h"
#include "kvstore/os/thread_workers.h"

namespace cairn::kv {
namespace {

Status CheckOptions(const EmbeddedOptions& options) {
  if (options.targets < 1 || options.targets > 100) {
    return Status(Code::kInvalid, "a node has 1 to 100 targets");
  }
  if (options.target_bytes < kTargetSizeMin || options.target_bytes % kSectorSize != 0) {
    return Status(Code::kInvalid, "a target has at least 64 MiB, in whole sectors");
  }
  const AdmissionOptions& admission = options.node.store.admission;
  if (admission.drive_writes_per_day <= 0 || admission.sightings_max == 0) {
    return Status(Code::kInvalid,
                  "admission: drive writes per day and sightings must be above zero");
  }
  return Status();
}

}  // namespace

// At least 128 segments where they can be so small, so that eviction is fine-grained.
uint64_t SegmentSizeFor(uint64_t target_bytes) {
  return std::clamp(std::bit_floor(target_bytes / 128), kSegmentSizeMin, kSegmentSizeDefault);
}

// What lives on the store's thread.
class EmbeddedNode::Core {
 public:
  Core(EmbeddedOptions options, Log& log, EmbeddedService* service, EmbeddedCluster* cluster)
      : options_(std::move(options)), log_(log), service_(service), cluster_(cluster), thread_(1) {}

  Status Start() {
    Handover<Status> opened;
    thread_.Run([this, &opened] { Serve(opened); });
    return opened.Wait();
  }

  Status Stop() {
    if (stopped_) return Status();
    stopped_ = true;
    stop_ = true;
    loop_.Post([] {});
    return ended_.Wait();
  }

  Client& client() { return *client_; }
  StoreStats stats() {
    if (stopped_) return {};
    Handover<StoreStats> answer;
    loop_.Post([this, &answer] { answer.Give(node_->stats()); });
    return answer.Wait();
  }

 private:
  // The whole life of the store, on its thread.
  void Serve(Handover<Status>& opened) {
    Status status = Open();
    if (status.ok()) status = StartService();
    const bool serving = status.ok();
    if (!serving) {
      Close();
      opened.Give(std::move(status));
      return;
    }
    opened.Give(Status());
    poller_->Run(stop_);
    if (service_ != nullptr) poller_->Await(service_->Stop());
    Status ended = StopStore();
    // The client stays, for calls that come too late.
    Close();
    ended_.Give(std::move(ended));
  }

  Status StartService() {
    if (service_ == nullptr) return Status();
    Status started = service_->Start({.poller = *poller_, .clock = *clock_, .node = *node_});
    if (!started.ok()) (void)StopStore();
    return started;
  }

  Status StopStore() {
    poller_->Await(client_->Stop());
    Status stopped = poller_->Await(node_->Stop());
    loop_.RunReady();
    return stopped;
  }

  Status Open() {
    KV_RETURN_IF_ERROR(CheckOptions(options_));
    KV_ASSIGN_OR_RETURN(dir_, DataDir::Open(options_.data_dir));
    KV_ASSIGN_OR_RETURN(poller_, Poller::Create(loop_, log_, options_.poller));
    clock_.emplace(*poller_, options_.unix_now);
    workers_ = std::make_unique<ThreadWorkers>(*poller_, options_.worker_threads);
    metadata_workers_ = std::make_unique<ThreadWorkers>(*poller_, options_.worker_threads);
    memory_ = std::make_unique<RocksDbMemory>(options_.metadata_cache_bytes,
                                              options_.metadata_memtable_bytes);
    media_ = std::make_unique<FolderMedia>(
        *dir_, *clock_, *poller_, *metadata_workers_, *memory_, log_,
        FolderMediaOptions{.targets = options_.targets, .target_bytes = options_.target_bytes});
    KV_RETURN_IF_ERROR(media_->Check());
    NodeOptions node_options = options_.node;
    node_options.segment_size = SegmentSizeFor(options_.target_bytes);
    Surroundings* surroundings = nullptr;
    if (cluster_ != nullptr) {
      cluster_opened_ = true;
      const EmbeddedCluster::Parts cluster_parts{
          .poller = *poller_, .clock = *clock_, .random = random_};
      KV_ASSIGN_OR_RETURN(surroundings, cluster_->Open(cluster_parts));
    }
    const NodeParts parts{.loop = loop_,
                          .clock = *clock_,
                          .workers = *workers_,
                          .random = random_,
                          .log = log_,
                          .media = *media_,
                          .surroundings = surroundings};
    KV_ASSIGN_OR_RETURN(node_, poller_->Await(Node::Open(parts, node_options)));
    client_ = std::make_unique<Client>(loop_, node_->store());
    return Status();
  }

  void Close() {
    node_.reset();
    if (std::exchange(cluster_opened_, false)) cluster_->Close();
    media_.reset();
    memory_.reset();
    metadata_workers_.reset();
    workers_.reset();
    clock_.reset();
    poller_.reset();
    dir_.reset();
  }

  static uint64_t Seed() {
    uint64_t seed = 0;
    KV_CHECK(::getrandom(&seed, sizeof(seed), 0) == sizeof(seed));
    return seed;
  }

  const EmbeddedOptions options_;
  Log& log_;
  EmbeddedService* const service_;
  EmbeddedCluster* const cluster_;
  bool cluster_opened_ = false;
  std::atomic<bool> stop_{false};
  bool stopped_ = false;
  Handover<Status> ended_;
  Loop loop_;
  Random random_{Seed()};
  std::unique_ptr<DataDir> dir_;
  std::unique_ptr<Poller> poller_;
  std::optional<SystemClock> clock_;
  std::unique_ptr<ThreadWorkers> workers_;
  std::unique_ptr<ThreadWorkers> metadata_workers_;  // Reads do not wait for RocksDB's syncs.
  std::unique_ptr<RocksDbMemory> memory_;
  std::unique_ptr<FolderMedia> media_;
  std::unique_ptr<Node> node_;
  std::unique_ptr<Client> client_;
  ThreadPool thread_;  // The last: ends before what it uses.
};

EmbeddedNode::EmbeddedNode(std::unique_ptr<Core> core) : core_(std::move(core)) {}

EmbeddedNode::~EmbeddedNode() { (void)Stop(); }

Result<std::unique_ptr<EmbeddedNode>> EmbeddedNode::Start(EmbeddedOptions options, Log& log,
                                                          EmbeddedService* service,
                                                          EmbeddedCluster* cluster) {
  auto core = std::make_unique<Core>(std::move(options), log, service, cluster);
  KV_RETURN_IF_ERROR(core->Start());
  return std::unique_ptr<EmbeddedNode>(new EmbeddedNode(std::move(core)));
}

Client& EmbeddedNode::client() { return core_->client(); }
StoreStats EmbeddedNode::stats() { return core_->stats(); }
Status EmbeddedNode::Stop() { return core_->Stop(); }

}  // namespace cairn::kv
