// Request logs become pieces in the order a model reads them, and chains that share true prefixes.
#include "tools/trace/text_log.h"

#include <gmock/gmock.h>

#include "tests/support/status_matchers.h"
#include "tests/unit/planner/trace_files.h"

namespace cairn::tools {
namespace {

using ::testing::HasSubstr;

std::vector<TextRequest> ReadLog(const std::string& text) {
  TextLog log = TextLog::Open(WriteTrace("log.jsonl", text), BrokenLines::kSkip,
                              WrongTimes::kLeave, 4)
                    .value();
  std::vector<TextRequest> requests;
  TextRequest request;
  while (log.Next(request).value()) requests.push_back(request);
  return requests;
}

TEST(TextLog, NamesPiecesOfAChatBody) {
  const auto requests = ReadLog(
      R"({"timestamp": 1760587666509217, "request": {"model": "m", "tools": [{"name": "read"}], "system": "Be brief.", "messages": [{"role": "user", "content": "hi", "cache_control": {"type": "ephemeral"}}]}, "response": {"usage": {"completion_tokens": 12, "prompt_tokens_details": {"cached_tokens": 64}}}}
)");
  ASSERT_EQ(requests.size(), 1u);
  const TextRequest& request = requests[0];
  EXPECT_EQ(request.base.time_ms, 1'760'587'666'509);  // Microseconds in the log.
  EXPECT_EQ(request.base.output_tokens, 12u);
  EXPECT_EQ(request.cached_tokens, 64u);
  ASSERT_EQ(request.pieces.size(), 3u);
  EXPECT_EQ(request.pieces[0].part, "tools[0]");
  EXPECT_EQ(request.pieces[1].part, "system");
  EXPECT_EQ(request.pieces[2].part, "messages[0].user");
  EXPECT_THAT(request.pieces[2].text, ::testing::Not(HasSubstr("cache_control")));
}

TEST(TextLog, ReadsResponsesMessagesAndPlainRecords) {
  const auto requests = ReadLog(
      R"({"created": 1, "body": {"instructions": "x", "input": [{"role": "user", "content": "a"}, {"type": "function_call", "name": "f"}]}}
{"timestamp": 2, "input": "plain text", "output": "four by four bytes", "session_id": "s"}
{"timestamp": 3, "messages": []}
{"timestamp": 3, "nothing": 1}
)");
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].pieces[2].part, "input[1].item");
  EXPECT_EQ(requests[1].pieces[0].part, "prompt");
  EXPECT_EQ(requests[1].base.output_tokens, 4u);
  EXPECT_NE(requests[1].base.session, 0u);
}

TEST(TextLog, ATimeMayBeADate) {
  const auto requests = ReadLog(
      R"({"timestamp": "2026-11-29T10:11:01Z", "input": "a"}
{"timestamp": "2026-11-29T12:11:02.500+02:00", "input": "b"}
{"created": "2026-11-29 10:11:04", "input": "c"}
{"timestamp": "yesterday", "input": "d"}
)");
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[1].base.time_ms - requests[0].base.time_ms, 1500);
  EXPECT_EQ(requests[2].base.time_ms - requests[0].base.time_ms, 3000);
}

TEST(TextLog, TimesThatAreMissingOrRunBackAreToldWhereTheyMatter) {
  const std::string path = WriteTrace("late.jsonl", R"({"timestamp": 9, "input": "a"}
{"input": "b"}
{"timestamp": 7.5, "input": "c"}
)");
  const auto source = OpenTrace(path, {.format = TraceFormat::kText}).value();
  const auto requests = ReadAll(*source);
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[2].time_ms, 9'000);
  EXPECT_EQ(source->issues().lines_retimed, 2u);
  EXPECT_THAT(source->issues().first[0], HasSubstr("line 2: has no timestamp"));
  EXPECT_THAT(source->issues().first[1], HasSubstr("line 3: its time runs back by 1500 ms"));
  // The linter does not ask when.
  TextLog log = TextLog::Open(path, BrokenLines::kRefuse, WrongTimes::kLeave, 4).value();
  TextRequest request;
  for (int line = 0; line < 3; ++line) EXPECT_TRUE(log.Next(request).value());
}

TEST(TextLog, ASessionMayBeANumber) {
  const auto requests = ReadLog(
      R"({"timestamp": 1, "input": "a", "session_id": 0}
{"timestamp": 2, "input": "b", "session_id": 7}
)");
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_NE(requests[0].base.session, 0u);
  EXPECT_NE(requests[0].base.session, requests[1].base.session);
}

TEST(ChainOf, SharesBlocksExactlyUpToTheFirstDifference) {
  TextRequest a;
  a.pieces = {{"system", std::string(100, 's')}, {"prompt", std::string(100, 'p')}};
  TextRequest b = a;
  b.pieces[1].text[50] = 'q';  // Byte 150: in the third block of 64.
  const auto chain_a = ChainOf(a, 64);
  const auto chain_b = ChainOf(b, 64);
  ASSERT_EQ(chain_a.size(), 3u);  // 200 bytes; the last 8 fill no block.
  EXPECT_EQ(chain_a[1], chain_b[1]);
  EXPECT_NE(chain_a[2], chain_b[2]);
  b.pieces[1].text[50] = 'p';
  b.pieces[0].text[0] = 'x';  // A different root changes every id after it.
  EXPECT_NE(chain_a[2], ChainOf(b, 64)[2]);
}

}  // namespace
}  // namespace cairn::tools
