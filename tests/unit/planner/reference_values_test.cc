// Published-trace hit rates to four decimals, as two other implementations measured them.
#include <algorithm>
#include <cmath>
#include <random>

#include "tests/unit/planner/trace_files.h"
#include "tools/cachesim/lru_curve.h"
#include "tools/cachesim/ttl_curve.h"

namespace cairn::tools {
namespace {

constexpr char kMooncake[] = "mooncake_conversation_trace.jsonl";
constexpr char kClaudeCode[] = "cc_weka_kvcachetester_710.rle.jsonl.gz";

struct Curves {
  LruCurve lru;
  TtlCurve ttl;
};

Curves Measure(const std::string& path, const TraceOptions& options, std::vector<int64_t> ttls_ms) {
  auto source = OpenTrace(path, options).value();
  Curves curves{LruCurve(source->block_tokens()), TtlCurve(source->block_tokens(), ttls_ms)};
  Request request;
  while (source->Next(request).value()) {
    const Access access{request.time_ms, request.input_tokens, request.blocks};
    curves.lru.Add(access);
    if (!ttls_ms.empty()) curves.ttl.Add(access);
  }
  return curves;
}

double Rounded(double rate) { return std::round(rate * 1e4) / 1e4; }

TEST(ReferenceValues, MooncakeConversation) {
  const std::string path = SharedTrace(kMooncake);
  if (path.empty()) GTEST_SKIP() << kMooncake << " is not at hand";
  const Curves curves =
      Measure(path, {}, {10'000, 30'000, 60'000, 120'000, 300'000, 600'000, 1'800'000, 3'600'000});
  EXPECT_EQ(curves.lru.requests(), 12'031u);
  EXPECT_EQ(Rounded(curves.lru.IdealHitRate()), 0.3736);
  EXPECT_EQ(Rounded(curves.lru.MeanRequestRate()), 0.4094);
  EXPECT_NEAR(static_cast<double>(curves.lru.distinct_blocks()) * 512, 93.6e6, 0.1e6);
  const std::vector<double> refreshed = {.0437, .0597, .1054, .1954, .2934, .3501, .3706, .3736};
  // The reference says .0577 at 30 s. Times here are multiples of 3 s, so many ages are exactly 30
  // s; a plain dictionary gives .0575 too, by any rule for such ties that fits the other rows.
  const std::vector<double> fixed = {.0426, .0575, .0952, .1666, .2533, .3104, .3625, .3736};
  for (size_t i = 0; i < refreshed.size(); ++i) {
    EXPECT_EQ(Rounded(curves.ttl.HitRateRefreshed(i)), refreshed[i]) << i;
    EXPECT_EQ(Rounded(curves.ttl.HitRateFixed(i)), fixed[i]) << i;
  }
  const std::vector<double> by_capacity = {.0457, .0560, .0896, .1851, .2708,
                                           .3415, .3665, .3725, .3736};
  for (size_t i = 0; i < by_capacity.size(); ++i) {
    EXPECT_EQ(Rounded(curves.lru.HitRateAtTokens(uint64_t{1} << (19 + i))), by_capacity[i]) << i;
  }
}

TEST(ReferenceValues, ClaudeCodeSessions) {
  const std::string path = SharedTrace(kClaudeCode);
  if (path.empty()) GTEST_SKIP() << kClaudeCode << " is not at hand";
  const std::vector<int64_t> ttls_ms = {10'000,     30'000,     60'000,    120'000,
                                        300'000,    600'000,    1'800'000, 3'600'000,
                                        10'800'000, 21'600'000, 86'400'000};
  const Curves curves = Measure(path, {}, ttls_ms);
  EXPECT_EQ(curves.lru.requests(), 49'334u);
  EXPECT_EQ(Rounded(curves.lru.IdealHitRate()), 0.9632);
  EXPECT_EQ(Rounded(curves.lru.MeanRequestRate()), 0.9511);
  EXPECT_NEAR(static_cast<double>(curves.lru.unique_tokens()), 220.9e6, 0.1e6);
  const std::vector<double> refreshed = {.1490, .6433, .7877, .8609, .9158, .9355,
                                         .9535, .9596, .9621, .9630, .9632};
  for (size_t i = 0; i < refreshed.size(); ++i) {
    EXPECT_EQ(Rounded(curves.ttl.HitRateRefreshed(i)), refreshed[i]) << i;
  }
  const std::vector<double> fixed = {.1024, .4290, .5898, .7052, .8013, .8488, .9057, .9291, .9562};
  for (size_t i = 0; i < fixed.size(); ++i) {
    EXPECT_NEAR(curves.ttl.HitRateFixed(i), fixed[i], 1e-4) << i;  // .10246 for .1024 at 10 s.
  }
  EXPECT_NEAR(curves.ttl.ResidentTokensPerRate(7), 26.5e6, 0.05e6);  // One hour.
  EXPECT_NEAR(curves.ttl.ResidentTokensPerRate(10), 399e6, 1e6);     // One day.
}

TEST(ReferenceValues, ClaudeCodeByBlockSize) {
  const std::string path = SharedTrace(kClaudeCode);
  if (path.empty()) GTEST_SKIP() << kClaudeCode << " is not at hand";
  const std::vector<std::pair<uint64_t, double>> by_block = {
      {256, .9624}, {512, .9614}, {1024, .9593}, {2048, .9552}};
  for (const auto& [block_tokens, rate] : by_block) {
    const Curves curves = Measure(path, {.block_tokens = block_tokens}, {});
    EXPECT_EQ(Rounded(curves.lru.IdealHitRate()), rate) << block_tokens;
  }
}

// Where sessions start is drawn at random, and moves the knee by 1.5 points: to four decimals the
// reference is met only from the starts that it drew. They are C++'s 64-bit Mersenne twister, one
// draw a session in the order of the file, as a real number of seconds below the span.
std::vector<double> ReferenceStarts(uint64_t seed, double span_s, size_t sessions) {
  std::mt19937_64 twister(seed);  // Its sequence is the standard's; distributions are not.
  std::vector<double> starts_s;
  for (size_t i = 0; i < sessions; ++i) {
    starts_s.push_back(static_cast<double>(twister()) * 0x1.0p-64 * span_s);
  }
  return starts_s;
}

constexpr int kFirstDoubling = 19;  // 0.52 M tokens, and twice as many in each later column.

void ExpectReference(const std::vector<Request>& requests, uint64_t seed, double span_s,
                     int first_doubling, const std::vector<double>& expected) {
  uint64_t sessions = 0;
  for (const Request& request : requests) sessions = std::max(sessions, request.session);
  const std::vector<double> starts_s = ReferenceStarts(seed, span_s, sessions);
  std::vector<std::pair<double, const Request*>> order;
  for (const Request& request : requests) {
    order.emplace_back(
        starts_s[request.session - 1] + static_cast<double>(request.time_ms) / 1e3, &request);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  LruCurve curve(512);
  for (const auto& [time_s, request] : order) {
    curve.Add(Access{std::llround(time_s * 1e3), request->input_tokens, request->blocks});
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    const uint64_t tokens = uint64_t{1} << (static_cast<size_t>(first_doubling) + i);
    EXPECT_EQ(Rounded(curve.HitRateAtTokens(tokens)), expected[i])
        << tokens << " tokens, over " << span_s << " s, seed " << seed;
  }
}

TEST(ReferenceValues, ClaudeCodeByCapacity) {
  const std::string path = SharedTrace(kClaudeCode);
  if (path.empty()) GTEST_SKIP() << kClaudeCode << " is not at hand";
  const std::vector<Request> requests = ReadAll(path, {.block_tokens = 512});
  ExpectReference(requests, 1, 86'400, kFirstDoubling,
                  {.2231, .4819, .7972, .9230, .9522, .9598, .9611, .9613, .9613});
  ExpectReference(requests, 1, 28'800, kFirstDoubling,
                  {.1339, .2254, .4312, .7552, .9129, .9501, .9593, .9610, .9613});
  ExpectReference(requests, 1, 3'600, kFirstDoubling,
                  {.1028, .1840, .2577, .3779, .6231, .8562, .9393, .9564, .9610});
  ExpectReference(requests, 2, 86'400, kFirstDoubling + 2, {.8119, .9280, .9536});
}

TEST(ReferenceValues, TextTraces) {
  const std::vector<std::pair<std::string, double>> expected = {
      {"lmcache_agent_miniswe.jsonl.gz", .932}, {"lmcache_agent_taubench.jsonl.gz", .687}};
  for (const auto& [name, rate] : expected) {
    const std::string path = SharedTrace(name);
    if (path.empty()) GTEST_SKIP() << name << " is not at hand";
    // Blocks of 256 bytes, and every byte counts.
    const Curves curves = Measure(path, {.block_tokens = 256, .bytes_per_token = 1}, {});
    EXPECT_NEAR(curves.lru.IdealHitRate(), rate, 0.0005) << name;
  }
}

}  // namespace
}  // namespace cairn::tools
