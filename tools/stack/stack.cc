// Builds the embedded shape bottom-up, and takes it down in the other direction.
#include "tools/stack/stack.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <future>
#include <utility>

#include "engine/compute/cpu/cpu_backend.h"
#include "engine/serve/local_engine.h"
#include "engine/serve/model_text.h"
#include "engine/transfer/prefix_store.h"
#include "gateway/api/gateway.h"
#include "kvstore/config/daemon_config.h"
#include "kvstore/daemon/store_service.h"
#include "kvstore/node/embedded/embedded_node.h"
#include "tools/stack/store_metrics.h"

namespace cairn::tools {
namespace {

using kv::Code;
using kv::Result;
using kv::Status;

// Time for threads that have no loop.
class ThreadClock final : public kv::Clock {
 public:
  kv::Instant Now() const override { return kv::Poller::Now(); }
  kv::UnixMillis UnixNow() const override {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return {std::chrono::duration_cast<std::chrono::milliseconds>(now).count()};
  }
  kv::Task<void> SleepUntil(kv::Instant, kv::Event*) override {
    KV_CHECK(false);  // A thread without a loop cannot await.
    co_return;
  }
};

// A model file with everything that was made from it.
struct LoadedModel {
  std::unique_ptr<engine::GgufFile> file;
  std::optional<engine::LlamaModel> model;
  std::unique_ptr<engine::TextCodec> text;
  std::unique_ptr<engine::KvPool> pool;
  std::unique_ptr<engine::Backend> backend;
};

Status LoadModel(const StackOptions& options, LoadedModel& loaded) {
  KV_ASSIGN_OR_RETURN(loaded.file, engine::GgufFile::Open(options.model_path));
  KV_ASSIGN_OR_RETURN(engine::LlamaModel model, engine::LlamaModel::Load(*loaded.file));
  KV_ASSIGN_OR_RETURN(loaded.text, engine::CreateModelText(*loaded.file));
  loaded.model = std::move(model);
  if (options.block_tokens == 0 || options.block_tokens % 16 != 0) {
    return Status(Code::kInvalid, "block_tokens must be a multiple of 16");
  }
  const auto layout = engine::PageLayout::For(loaded.model->shape, options.block_tokens);
  const uint32_t context = options.context_tokens_max == 0 ? loaded.model->shape.context_max
                                                           : options.context_tokens_max;
  const uint64_t blocks = std::max(kv::DivCeil(context, options.block_tokens),
                                   options.kv_pool_bytes / layout.block_bytes());
  loaded.pool = std::make_unique<engine::KvPool>(layout, static_cast<uint32_t>(blocks));
  engine::CpuBackendOptions backend;
  backend.threads = options.threads;
  KV_ASSIGN_OR_RETURN(loaded.backend,
                      engine::CreateCpuBackend(*loaded.model, *loaded.pool, backend));
  return Status();
}

Result<kv::NamespaceId> AttachModel(kv::Client& client, const StackOptions& options,
                                    const LoadedModel& loaded, const std::string& model_name) {
  const std::string& sha256 = loaded.file->sha256_hex();
  kv::NamespaceOptions space;
  // Another revision of the model, or another block size, is another namespace from the start.
  space.name = model_name.substr(0, 96) + "@" + sha256.substr(0, 12) + "/" +
               std::to_string(options.block_tokens);
  space.fingerprint = engine::LayoutFingerprint(sha256, loaded.pool->layout());
  space.ttl_seconds = options.ttl_seconds;
  if (options.targets < space.data_shards + space.parity_shards) {
    return Status(Code::kInvalid, "10+2 needs at least 12 targets");
  }
  return kv::AttachAndWait(client, space);
}

class RunningStack final : public Stack {
 public:
  RunningStack(StackOptions options, kv::Log& log) : options_(std::move(options)), log_(log) {}
  ~RunningStack() override {
    const Status stopped = Stop();
    if (!stopped.ok()) log_.Error("stopping: " + stopped.ToString());
  }

  Status Start() {
    if (options_.model_name.empty()) {
      options_.model_name = std::filesystem::path(options_.model_path).stem().string();
    }
    KV_RETURN_IF_ERROR(LoadModel(options_, model_));
    log_.Info("model " + options_.model_name + " is loaded");
    KV_RETURN_IF_ERROR(StartStore());
    log_.Info("store serves from " + options_.data_dir);
    KV_ASSIGN_OR_RETURN(const kv::NamespaceId space,
                        AttachModel(node_->client(), options_, model_, options_.model_name));
    prefixes_ = std::make_unique<engine::BlockStorePrefixStore>(node_->client(), space,
                                                                *model_.pool);
    engine::LocalEngineOptions engine_options;
    engine_options.model_name = options_.model_name;
    engine_options.context_tokens_max = options_.context_tokens_max;
    engine_options.load_only_if_faster = options_.load_only_if_faster;
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    engine_options.seed = static_cast<uint64_t>(now);
    const engine::LocalEngine::Parts parts{*model_.backend, *model_.text, *prefixes_, clock_};
    engine_ = std::make_unique<engine::LocalEngine>(parts, engine_options);
    metrics_ = std::make_unique<StoreMetrics>(*node_);
    return StartGateway();
  }

  uint16_t port() const override { return gateway_->port(); }

  Status Stop() override {
    if (gateway_) gateway_->Stop();
    gateway_.reset();
    metrics_.reset();
    engine_.reset();
    prefixes_.reset();
    Status status;
    if (node_) status = node_->Stop();
    node_.reset();
    return status;
  }

 private:
  Status StartStore() {
    kv::EmbeddedOptions store;
    store.data_dir = options_.data_dir;
    store.targets = options_.targets;
    store.target_bytes = kv::AlignDown(options_.capacity_bytes / options_.targets, kv::kMiB);
    store.poller.engine = options_.poller;
    KV_ASSIGN_OR_RETURN(node_, kv::EmbeddedNode::Start(store, log_, ServiceOf(store.data_dir)));
    return Status();
  }

  // The socket for `cairn status` and its like; null where the system has no name for it.
  kv::EmbeddedService* ServiceOf(const std::string& data_dir) {
    kv::StoreServiceOptions options;
    options.self_test = false;
    options.server.unix_path = kv::SocketPathOf(data_dir);
    if (options.server.unix_path.size() > kv::kSocketPathMax) {
      log_.Warning("no socket for cairn's store verbs: its path would be too long");
      return nullptr;
    }
    service_ = std::make_unique<kv::StoreService>(options, log_);
    return service_.get();
  }

  Status StartGateway() {
    gateway::GatewayOptions options;
    options.server.address = options_.host;
    options.server.port = options_.port;
    options.bearer_token = options_.bearer_token;
    options.metrics_sources = {metrics_.get()};
    KV_ASSIGN_OR_RETURN(gateway_, gateway::Gateway::Start(options, *engine_, clock_, log_));
    return Status();
  }

  StackOptions options_;
  kv::Log& log_;
  ThreadClock clock_;
  LoadedModel model_;
  std::unique_ptr<kv::StoreService> service_;  // Outlives node_.
  std::unique_ptr<kv::EmbeddedNode> node_;
  std::unique_ptr<engine::PrefixStore> prefixes_;
  std::unique_ptr<engine::LocalEngine> engine_;
  std::unique_ptr<StoreMetrics> metrics_;
  std::unique_ptr<gateway::Gateway> gateway_;
};

}  // namespace

Result<ModelSummary> CheckModel(const std::string& path) {
  KV_ASSIGN_OR_RETURN(const std::unique_ptr<engine::GgufFile> file, engine::GgufFile::Open(path));
  KV_ASSIGN_OR_RETURN(const engine::LlamaModel model, engine::LlamaModel::Load(*file));
  KV_RETURN_IF_ERROR(engine::CreateModelText(*file).status());
  return ModelSummary{
      .architecture = model.shape.architecture,
      .parameters = model.shape.parameters,
      .context_tokens_max = model.shape.context_max,
      .kv_bytes_per_token = engine::PageLayout::For(model.shape, 32).token_bytes()};
}

Result<std::unique_ptr<Stack>> Stack::Start(StackOptions options, kv::Log& log) {
  auto stack = std::make_unique<RunningStack>(std::move(options), log);
  KV_RETURN_IF_ERROR(stack->Start());
  return std::unique_ptr<Stack>(std::move(stack));
}

}  // namespace cairn::tools
