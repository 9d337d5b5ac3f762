// What a trace says about caching it: hit rates by TTL, capacity, block size and policy.
#pragma once

#include <string>
#include <vector>

#include "tools/trace/trace_source.h"

namespace cairn::tools {

struct TraceReportOptions {
  TraceOptions trace = {};
  std::vector<int64_t> ttls_ms = {};  // Empty = from seconds to a week, as the trace's span asks.
  std::vector<uint64_t> capacities_tokens =
      {};  // Empty = powers of two up to what the trace holds.
  // Also S3-FIFO and the store's own policy, at each capacity: the trace is read again for it.
  bool policies = false;
  double bytes_per_token = 890;             // For capacities in bytes, and the store's stripes.
  int64_t store_ttl_ms = 3 * 86'400'000LL;  // Of the store's policy.
};

// From seconds to a week.
std::vector<int64_t> UsualTtls();

struct TtlRow {
  int64_t ttl_ms = 0;
  double refreshed = 0;
  double fixed = 0;
  double resident_tokens_per_rate = 0;  // For each request per second.
};
struct CapacityRow {
  uint64_t tokens = 0;
  double lru = 0;
  double s3_fifo = -1;  // Below 0: not asked for.
  double store = -1;    // With this many tokens as logical bytes, parity on top.
};
struct BlockRow {
  uint64_t tokens = 0;
  double ideal = 0;
};

struct TraceReport {
  uint64_t block_tokens = 0;
  uint64_t requests = 0;
  uint64_t requests_without_hit = 0;
  uint64_t input_tokens = 0;
  uint64_t output_tokens = 0;
  uint64_t unique_tokens = 0;
  uint64_t touches = 0;
  int64_t span_ms = 0;
  double ideal = 0;
  double mean_request_rate = 0;
  double ideal_with_output =
      0;  // When answers are written back too. Needs sessions; else as ideal.
  std::vector<TtlRow> by_ttl;
  std::vector<CapacityRow> by_capacity;
  std::vector<BlockRow> by_block;
  TraceIssues issues;
  double seconds = 0;  // Spent on the first reading.
};

// kInvalid: an empty trace. Reads `path` once, or twice with `policies`.
kv::Result<TraceReport> ReportTrace(const std::string& path, const TraceReportOptions& options);

// What was wrong with the lines; empty when nothing was.
std::string IssuesText(const TraceIssues& issues);
std::string TraceText(const TraceReport& report, double bytes_per_token);
std::string TraceJson(const TraceReport& report);
std::string TraceHtml(const TraceReport& report, const std::string& title, double bytes_per_token);

}  // namespace cairn::tools
