// A trace's report: answers written back, larger blocks, and the public reference where it is at
// hand.
#include "tools/planner/trace_report.h"

#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"
#include "tests/unit/planner/trace_files.h"

namespace cairn::tools {
namespace {

constexpr char kTwoTurns[] =
    R"({"id": "a", "block_size": 64, "req": [[0, 128, 70, 0, 1, 0, [1, 2]], [9, 256, 5, 0, 1, 0, [1, 4]]]})";

TEST(TraceReport, AnswersWrittenBackReachToTheirLastFullBlock) {
  const auto report = ReportTrace(WriteTrace("turns.jsonl", kTwoTurns), {});
  ASSERT_THAT(report, testing::IsOk());
  EXPECT_DOUBLE_EQ(report.value().ideal, 128.0 / 384);
  // The answer ends at token 198, so blocks up to 192 are whole.
  EXPECT_DOUBLE_EQ(report.value().ideal_with_output, 192.0 / 384);
}

TEST(TraceReport, ATraceWithoutAnyHitIsReportedToo) {
  const auto report = ReportTrace(
      WriteTrace("cold.jsonl", R"({"timestamp": 1, "input_length": 600, "hash_ids": [1, 2]})"), {});
  ASSERT_THAT(report, testing::IsOk());
  EXPECT_EQ(report.value().ideal, 0);
  EXPECT_TRUE(report.value().by_capacity.empty());
}

TEST(TraceReport, AnEmptyTraceIsRefused) {
  const auto report = ReportTrace(
      WriteTrace("none.jsonl", "{\"id\": \"a\", \"block_size\": 64, \"req\": []}\n"), {});
  EXPECT_THAT(report, testing::HasCode(kv::Code::kInvalid));
}

TEST(TraceReport, LargerBlocksInOnePassEqualJoinedBlocks) {
  const std::string path = CAIRN_SOURCE_DIR "/docs/guides/data/agents.jsonl";
  const TraceReport once = ReportTrace(path, {}).value();
  for (const BlockRow& row : once.by_block) {
    const TraceReport joined = ReportTrace(path, {.trace = {.block_tokens = row.tokens}}).value();
    EXPECT_DOUBLE_EQ(joined.ideal, row.ideal) << row.tokens;
  }
}

TEST(TraceReport, ClaudeCodeSessionsWithAnswersWrittenBack) {
  const char* name = "cc_weka_kvcachetester_710.rle.jsonl.gz";
  const std::string path = SharedTrace(name);
  if (path.empty()) GTEST_SKIP() << name << " is not at hand";
  const TraceReport report = ReportTrace(path, {.ttls_ms = {3'600'000}}).value();
  // The reference says .9660: it gives the answer blocks of its own. Here the answer first fills
  // the prompt's last block, as an engine does, which makes .9662.
  EXPECT_NEAR(report.ideal_with_output, 0.9662, 5e-5);
}

}  // namespace
}  // namespace cairn::tools
