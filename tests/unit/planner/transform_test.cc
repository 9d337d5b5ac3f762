// Samples, scaled and anonymised traces reuse what their originals reuse.
#include "tools/trace/transform.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/status_matchers.h"
#include "tests/unit/planner/naive_caches.h"
#include "tests/unit/planner/trace_files.h"
#include "tools/cachesim/lru_curve.h"
#include "tools/trace/trace_writer.h"

namespace cairn::tools {
namespace {

using testing::HasCode;
constexpr uint64_t kBlockTokens = 16;

// 40 sessions of growing chains.
std::string SessionsFile() {
  std::string text;
  kv::Random random(3);
  for (int turn = 0; turn < 12; ++turn) {
    for (uint64_t session = 1; session <= 40; ++session) {
      Request request{.time_ms = turn * 60'000 + static_cast<int64_t>(session),
                      .output_tokens = 4,
                      .session = session};
      const uint64_t blocks = 2 + static_cast<uint64_t>(turn) + random.Below(2);
      for (uint64_t i = 0; i < blocks; ++i)
        request.blocks.push_back(i == 0 ? 1 : session * 1'000 + i);
      request.input_tokens = blocks * kBlockTokens;
      text += MooncakeLine(request, kBlockTokens);
    }
  }
  return WriteTrace("transform.jsonl", text);
}

double IdealRate(const std::vector<Request>& requests) {
  LruCurve curve(kBlockTokens);
  for (const Request& request : requests) {
    curve.Add({.time_ms = request.time_ms,
               .input_tokens = request.input_tokens,
               .blocks = request.blocks});
  }
  return curve.IdealHitRate();
}

std::unique_ptr<TraceSource> Open() { return OpenTrace(SessionsFile(), {}).value(); }

TEST(Sample, KeepsSessionsWhole) {
  const auto all = ReadAll(*Open());
  auto sampled = ReadAll(*Sample(Open(), {.share = 0.3, .seed = 2}).value());
  std::set<uint64_t> kept;
  for (const Request& request : sampled) kept.insert(request.session);
  EXPECT_EQ(sampled.size(), kept.size() * 12);
  EXPECT_GT(kept.size(), 4u);
  EXPECT_LT(kept.size(), 25u);
  EXPECT_NEAR(IdealRate(sampled), IdealRate(all), 0.02);
  EXPECT_EQ(ReadAll(*Sample(Open(), {.share = 1}).value()).size(), all.size());
  EXPECT_THAT(Sample(Open(), {.share = 30}), HasCode(kv::Code::kInvalid));
}

TEST(Scale, MultipliesLoadAndKeepsReuse) {
  const auto all = ReadAll(*Open());
  const auto scaled =
      ReadAll(*Scale(Open(), {.copies = 3, .shared_blocks = 1, .jitter_ms = 90'000}).value());
  ASSERT_EQ(scaled.size(), 3 * all.size());
  for (size_t i = 1; i < scaled.size(); ++i) {
    ASSERT_LE(scaled[i - 1].time_ms, scaled[i].time_ms) << "time runs backwards at " << i;
  }
  EXPECT_NEAR(IdealRate(scaled), IdealRate(all), 0.001);
  const auto faster = ReadAll(*Scale(Open(), {.copies = 1, .time_scale = 0.5}).value());
  EXPECT_EQ(faster.back().time_ms - faster.front().time_ms,
            (all.back().time_ms - all.front().time_ms + 1) / 2);
  EXPECT_THAT(Scale(Open(), {.copies = 0}), HasCode(kv::Code::kInvalid));
}

TEST(Anonymise, RenamesEverythingConsistentlyUnderItsKey) {
  const auto all = ReadAll(*Open());
  const auto hidden = ReadAll(*Anonymise(Open(), "0123456789abcdef").value());
  const auto again = ReadAll(*Anonymise(Open(), "0123456789abcdef").value());
  const auto other = ReadAll(*Anonymise(Open(), "fedcba9876543210").value());
  EXPECT_DOUBLE_EQ(IdealRate(hidden), IdealRate(all));
  EXPECT_EQ(hidden[0].time_ms, 0);
  EXPECT_EQ(hidden[5].blocks, again[5].blocks);
  EXPECT_NE(hidden[5].blocks, other[5].blocks);
  EXPECT_NE(hidden[5].session, all[5].session);
  // printf '\x01\0\0\0\0\0\0\0' | openssl dgst -sha256 -mac HMAC -macopt key:0123456789abcdef
  // gives f826..: the first 8 bytes, little-endian, without the lowest bit.
  EXPECT_EQ(hidden[0].blocks[0], UINT64_C(6110411910347264892));
  EXPECT_THAT(Anonymise(Open(), "short"), HasCode(kv::Code::kInvalid));
}

}  // namespace
}  // namespace cairn::tools
