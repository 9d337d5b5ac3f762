// Feeds all simulators from one reading of the trace.
#include "tools/planner/trace_report.h"

#include <algorithm>
#include <chrono>
#include <unordered_map>

#include "tools/cachesim/block_table.h"
#include "tools/cachesim/lru_curve.h"
#include "tools/cachesim/s3_fifo.h"
#include "tools/cachesim/store_policy.h"
#include "tools/cachesim/ttl_curve.h"

namespace cairn::tools {
namespace {

constexpr int64_t kSecond = 1'000, kMinute = 60'000, kHour = 3'600'000, kDay = 86'400'000;
constexpr uint64_t kSmallestCapacity = 1 << 14;
constexpr int kBlockDoublings = 5;

// Hits of a cache that also keeps the KV of answers: the next turn of a session that extends the
// last one finds it up to the end of that answer.
class WriteBack {
 public:
  explicit WriteBack(uint64_t block_tokens) : block_tokens_(block_tokens) {}

  void Add(const Request& request, uint64_t hit_tokens) {
    uint64_t tokens = hit_tokens;
    if (request.session != 0) {
      Turn& last = turns_[request.session * 1'000'003 + request.agent];
      const size_t before = last.full_blocks;
      if (before > 0 && request.blocks.size() >= before && request.blocks[before - 1] == last.id) {
        const uint64_t kept = last.tokens / block_tokens_ * block_tokens_;
        tokens = std::max(tokens, std::min(kept, request.blocks.size() * block_tokens_));
      }
      last.full_blocks =
          std::min<size_t>(request.blocks.size(), request.input_tokens / block_tokens_);
      last.id = last.full_blocks == 0 ? 0 : request.blocks[last.full_blocks - 1];
      last.tokens = request.input_tokens + request.output_tokens;
    }
    hit_tokens_ += std::min(tokens, request.input_tokens);
  }
  uint64_t hit_tokens() const { return hit_tokens_; }

 private:
  struct Turn {
    size_t full_blocks = 0;
    uint64_t id = 0;
    uint64_t tokens = 0;
  };
  const uint64_t block_tokens_;
  std::unordered_map<uint64_t, Turn> turns_;
  uint64_t hit_tokens_ = 0;
};

// The same trace in blocks 2, 4, 8, ... times as large.
struct Coarser {
  uint64_t factor;
  LruCurve curve;
  std::vector<uint32_t> blocks = {};

  void Add(const NumberedAccess& access, bool has_partial, uint64_t block_tokens) {
    blocks.clear();
    const size_t count = access.blocks.size();
    for (size_t end = factor; end <= count; end += factor) blocks.push_back(access.blocks[end - 1]);
    const bool whole = has_partial && count * block_tokens >= access.input_tokens;
    if (whole && count % factor != 0) blocks.push_back(access.blocks.back());
    curve.Add(NumberedAccess{access.time_ms, access.input_tokens, blocks, access.numbers});
  }
};

std::vector<uint64_t> CapacitiesOf(const TraceReportOptions& options, const LruCurve& curve) {
  if (!options.capacities_tokens.empty()) return options.capacities_tokens;
  std::vector<uint64_t> capacities;
  for (uint64_t tokens = kSmallestCapacity; tokens != 0; tokens *= 2) {
    if (curve.HitRateAtTokens(tokens) > 0) capacities.push_back(tokens);
    if (tokens >= curve.unique_tokens()) break;
  }
  return capacities;
}

constexpr uint64_t kWideStripeBytes = 640 * 1024;

struct Readers {
  std::vector<S3Fifo> s3_fifos;
  std::vector<StorePolicy> stores;
};

kv::Status AddPolicies(const TraceReportOptions& options, TraceReport& report, Readers& readers) {
  for (const CapacityRow& row : report.by_capacity) {
    readers.s3_fifos.emplace_back(report.block_tokens,
                                  std::max<uint64_t>(1, row.tokens / report.block_tokens));
    const auto physical = static_cast<uint64_t>(static_cast<double>(row.tokens) *
                                                options.bytes_per_token * 1.2);
    // 128 segments of several stripes each, as in a store of this size; in tiny ones fewer, since a
    // stripe over all targets has 640 KiB.
    const uint64_t segment = std::max<uint64_t>(physical / 128, kWideStripeBytes * 12 / 10);
    StorePolicyOptions store{
        .capacity_bytes = physical,
        .segment_bytes = segment,
        .block_tokens = report.block_tokens,
        .bytes_per_token = options.bytes_per_token,
        .payload_bytes_max = std::max(segment * 10 / 12 / 8, kWideStripeBytes),
        .classes = {{.name = "agent", .ttl_ms = options.store_ttl_ms, .refresh_on_hit = true}}};
    KV_ASSIGN_OR_RETURN(StorePolicy policy, StorePolicy::Create(std::move(store)));
    readers.stores.push_back(std::move(policy));
  }
  return kv::Status();
}

kv::Status ReadAgain(const std::string& path, const TraceReportOptions& options,
                     TraceReport& report) {
  Readers readers;
  KV_RETURN_IF_ERROR(AddPolicies(options, report, readers));
  KV_ASSIGN_OR_RETURN(std::unique_ptr<TraceSource> source, OpenTrace(path, options.trace));
  Request request;
  while (true) {
    KV_ASSIGN_OR_RETURN(const bool more, source->Next(request));
    if (!more) break;
    const Access access{request.time_ms, request.input_tokens, request.blocks};
    for (S3Fifo& cache : readers.s3_fifos) cache.Add(access);
    for (StorePolicy& store : readers.stores) store.Add(access, 0);
  }
  for (size_t i = 0; i < report.by_capacity.size(); ++i) {
    report.by_capacity[i].s3_fifo = readers.s3_fifos[i].HitRate();
    report.by_capacity[i].store = readers.stores[i].counts().HitRate();
  }
  return kv::Status();
}

double Share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// Past the span of the trace a TTL can show nothing new: one such row is enough.
void FillTtls(const TtlCurve& curve, bool all, TraceReport& report) {
  for (size_t i = 0; i < curve.ttls_ms().size(); ++i) {
    report.by_ttl.push_back({.ttl_ms = curve.ttls_ms()[i],
                             .refreshed = curve.HitRateRefreshed(i),
                             .fixed = curve.HitRateFixed(i),
                             .resident_tokens_per_rate = curve.ResidentTokensPerRate(i)});
    if (!all && curve.ttls_ms()[i] > report.span_ms) break;
  }
}

void FillTotals(const LruCurve& curve, const WriteBack& write_back, TraceReport& report) {
  report.requests = curve.requests();
  report.requests_without_hit = curve.requests_without_hit();
  report.input_tokens = curve.input_tokens();
  report.unique_tokens = curve.unique_tokens();
  report.touches = curve.touches();
  report.ideal = curve.IdealHitRate();
  report.mean_request_rate = curve.MeanRequestRate();
  report.ideal_with_output = Share(write_back.hit_tokens(), curve.input_tokens());
}

}  // namespace

std::vector<int64_t> UsualTtls() {
  return {10 * kSecond, 30 * kSecond, kMinute,   5 * kMinute, 10 * kMinute, 30 * kMinute,
          kHour,        3 * kHour,    6 * kHour, kDay,        3 * kDay,     7 * kDay};
}

kv::Result<TraceReport> ReportTrace(const std::string& path, const TraceReportOptions& options) {
  const auto started = std::chrono::steady_clock::now();
  KV_ASSIGN_OR_RETURN(std::unique_ptr<TraceSource> source, OpenTrace(path, options.trace));
  TraceReport report;
  report.block_tokens = source->block_tokens();
  LruCurve lru(report.block_tokens);
  TtlCurve ttl(report.block_tokens, options.ttls_ms.empty() ? UsualTtls() : options.ttls_ms);
  WriteBack write_back(report.block_tokens);
  std::vector<Coarser> coarser;
  for (int i = 1; i <= kBlockDoublings; ++i) {
    const uint64_t factor = uint64_t{1} << i;
    coarser.push_back({factor, LruCurve(report.block_tokens * factor)});
  }
  BlockTable table;
  std::vector<uint32_t> numbered;
  Request request;
  int64_t first_ms = 0;
  while (true) {
    KV_ASSIGN_OR_RETURN(const bool more, source->Next(request));
    if (!more) break;
    if (lru.requests() == 0) first_ms = request.time_ms;
    report.span_ms = std::max(report.span_ms, request.time_ms - first_ms);
    table.Intern(request.blocks, numbered);
    const NumberedAccess access{request.time_ms, request.input_tokens, numbered, table.size()};
    lru.Add(access);
    ttl.Add(access);
    write_back.Add(request, lru.last_hit_tokens());
    for (Coarser& larger : coarser) {
      larger.Add(access, source->has_partial_blocks(), report.block_tokens);
    }
    report.output_tokens += request.output_tokens;
  }
  report.issues = source->issues();
  if (lru.requests() == 0) {
    return kv::Status(kv::Code::kInvalid,
                      path + " holds no request that can be read" +
                          (report.issues.first.empty() ? "" : "; " + report.issues.first.front()));
  }
  FillTotals(lru, write_back, report);
  FillTtls(ttl, !options.ttls_ms.empty(), report);
  for (const uint64_t tokens : CapacitiesOf(options, lru)) {
    report.by_capacity.push_back({.tokens = tokens, .lru = lru.HitRateAtTokens(tokens)});
  }
  report.by_block.push_back({report.block_tokens, report.ideal});
  for (const Coarser& larger : coarser) {
    report.by_block.push_back({report.block_tokens * larger.factor, larger.curve.IdealHitRate()});
  }
  report.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  if (options.policies) KV_RETURN_IF_ERROR(ReadAgain(path, options, report));
  return report;
}

}  // namespace cairn::tools
