// The store's calendar follows the trace, so that ages are those of the recording.
#include "tools/replay/replay.h"

#include <chrono>
#include <cmath>
#include <memory>

#include "kvstore/base/random.h"
#include "kvstore/node/embedded/embedded_node.h"
#include "tools/replay/prediction.h"
#include "tools/replay/replay_store.h"

namespace cairn::tools {
namespace {

constexpr uint32_t kTargets = 12;
constexpr uint64_t kCapacityMax = 1024 * kv::kTiB;

uint64_t AnswerBlock(uint64_t request, uint64_t index) {
  return (uint64_t{0xa} << 60) ^ (request << 24) ^ index;
}

kv::Status Check(const ReplayOptions& options) {
  if (!(options.bytes_per_token > 0) || !std::isfinite(options.bytes_per_token)) {
    return {kv::Code::kInvalid, "the bytes per token must be above zero"};
  }
  if (options.connect.empty() && (options.capacity_bytes < kTargets * kv::kTargetSizeMin ||
                                  options.capacity_bytes > kCapacityMax)) {
    return {kv::Code::kInvalid,
            "the capacity is 768 MiB (12 targets of 64 MiB) to 1 PiB"};
  }
  if (options.read_share <= 0 || options.read_share > 1) {
    return {kv::Code::kInvalid, "the share of requests that are read is above 0 and at most 1"};
  }
  if (options.predict_only) {
    if (options.data_dir.empty() && options.connect.empty()) return kv::Status();
    return {kv::Code::kInvalid, "--predict-only drives no store: leave out --data and --connect"};
  }
  if (options.data_dir.empty() == options.connect.empty()) {
    return {kv::Code::kInvalid,
            "say where: --data FOLDER makes a store, --connect ADDRESS takes a running one"};
  }
  if (!options.connect.empty() && options.predict) {
    return {kv::Code::kInvalid,
            "--predict needs a store of its own (--data): a running one keeps its own calendar"};
  }
  return kv::Status();
}

kv::Result<std::unique_ptr<ReplayStore>> OpenStore(const ReplayOptions& options, kv::Log& log) {
  if (!options.connect.empty()) return ReplayStore::At(options.connect, log);
  return ReplayStore::InFolder({.data_dir = options.data_dir,
                                .capacity_bytes = options.capacity_bytes,
                                .targets = kTargets,
                                .poller = options.poller},
                               log);
}

void FillReport(const Prediction& prediction, ReplayReport& report) {
  report.predicted = {.hit_rate = prediction.StoreHitRate(),
                      .write_amplification = prediction.WriteAmplification(),
                      .lru_hit_rate = prediction.LruHitRate(),
                      .unbounded_hit_rate = prediction.UnboundedHitRate(),
                      .space = prediction.Space()};
}

// The prompt's blocks, and those of the answer where they are wanted.
std::vector<uint64_t> ChainOf(const Request& request, const ReplayOptions& options,
                              uint64_t block_tokens, uint64_t number) {
  std::vector<uint64_t> chain = request.blocks;
  if (!options.answers) return chain;
  const uint64_t total = (request.input_tokens + request.output_tokens) / block_tokens;
  for (uint64_t i = chain.size(); i < total; ++i) chain.push_back(AnswerBlock(number, i));
  return chain;
}

kv::Result<Prediction> MakePrediction(const ReplayOptions& options, uint64_t block_tokens,
                                      uint64_t block_bytes) {
  return Prediction::Create({.capacity_bytes = options.capacity_bytes,
                             .targets = kTargets,
                             .block_tokens = block_tokens,
                             .block_bytes = block_bytes});
}

// False at the end, or when there were enough.
kv::Result<bool> NextRequest(TraceSource& source, const ReplayOptions& options,
                             ReplayReport& report, Request& request) {
  if (options.requests_max > 0 && report.requests >= options.requests_max) return false;
  KV_ASSIGN_OR_RETURN(const bool more, source.Next(request));
  if (!more) return false;
  ++report.requests;
  report.prompt_tokens += request.input_tokens;
  return true;
}

kv::Status PredictOnly(TraceSource& source, const ReplayOptions& options, ReplayReport& report) {
  report.measured = false;
  const uint64_t block_tokens = source.block_tokens();
  KV_ASSIGN_OR_RETURN(Prediction prediction,
                      MakePrediction(options, block_tokens, report.block_bytes));
  Request request;
  while (true) {
    KV_ASSIGN_OR_RETURN(const bool more, NextRequest(source, options, report, request));
    if (!more) break;
    const auto chain = ChainOf(request, options, block_tokens, report.requests);
    prediction.Add({request.time_ms, request.input_tokens, request.blocks}, chain);
    if (options.progress) options.progress(report.requests);
  }
  FillReport(prediction, report);
  return kv::Status();
}

}  // namespace

double ReplayReport::HitRate() const {
  if (prompt_tokens == 0) return 0;
  return static_cast<double>(hit_tokens) / static_cast<double>(prompt_tokens);
}

double ReplayReport::WriteAmplification() const {
  const uint64_t put = store.bytes_appended - store.bytes_moved;
  return put == 0 ? 1 : static_cast<double>(store.bytes_appended) / static_cast<double>(put);
}

kv::Result<ReplayReport> Replay(TraceSource& source, const ReplayOptions& options, kv::Log& log) {
  KV_RETURN_IF_ERROR(Check(options));
  ReplayReport report;
  const uint64_t block_tokens = source.block_tokens();
  report.block_bytes = static_cast<uint64_t>(
      std::llround(std::max(1.0, static_cast<double>(block_tokens) * options.bytes_per_token)));
  if (options.predict_only) {
    KV_RETURN_IF_ERROR(PredictOnly(source, options, report));
    return report;
  }
  std::optional<Prediction> prediction;
  if (options.predict) {
    KV_ASSIGN_OR_RETURN(Prediction made, MakePrediction(options, block_tokens, report.block_bytes));
    prediction.emplace(std::move(made));
  }
  KV_ASSIGN_OR_RETURN(const std::unique_ptr<ReplayStore> store, OpenStore(options, log));
  kv::Random chance(1);
  StoreDriver driver(store->client(), store->space(), report.block_bytes);
  const auto started = std::chrono::steady_clock::now();
  Request request;
  while (true) {
    KV_ASSIGN_OR_RETURN(const bool more, NextRequest(source, options, report, request));
    if (!more) break;
    store->SetTime(request.time_ms);
    const auto chain = ChainOf(request, options, block_tokens, report.requests);
    const bool read = chance.Unit() < options.read_share;
    KV_ASSIGN_OR_RETURN(const uint64_t hit, driver.Run(chain, request.blocks.size(), read));
    report.hit_tokens += TokensInBlocks(hit, block_tokens, request.input_tokens);
    if (prediction) {
      prediction->Add({request.time_ms, request.input_tokens, request.blocks}, chain);
    }
    if (options.progress) options.progress(report.requests);
  }
  report.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  KV_ASSIGN_OR_RETURN(report.store, store->Stats());
  report.driver = driver.counts();
  if (prediction) FillReport(*prediction, report);
  KV_RETURN_IF_ERROR(store->Finish());
  return report;
}

}  // namespace cairn::tools
