// Every trace format gives the requests that were written, and names the lines that are broken.
#include <gmock/gmock.h>

#include "tests/support/status_matchers.h"
#include "tests/unit/planner/trace_files.h"
#include "tools/trace/line_reader.h"
#include "tools/trace/trace_writer.h"

namespace cairn::tools {
namespace {

using ::testing::ElementsAre;
using testing::HasCode;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;

constexpr char kGood[] =
    R"({"timestamp": 27, "input_length": 600, "output_length": 5, "hash_ids": [1, 2]})";

// The second line is wrong: what is said of it when it is let pass...
void ExpectTold(const TraceSource& source, const std::string& complaint) {
  ASSERT_EQ(source.issues().first.size(), 1u) << complaint;
  EXPECT_THAT(source.issues().first[0], HasSubstr("line 2: "));
  EXPECT_THAT(source.issues().first[0], HasSubstr(complaint));
}

// ...and when it is refused.
void ExpectRefused(const std::string& path, const std::string& complaint) {
  auto strict = OpenTrace(path, {.broken_lines = BrokenLines::kRefuse}).value();
  Request request;
  EXPECT_TRUE(strict->Next(request).value());
  const auto refused = strict->Next(request);
  ASSERT_THAT(refused, HasCode(kv::Code::kCorrupt));
  EXPECT_THAT(refused.status().message(), HasSubstr("line 2: "));
  EXPECT_THAT(refused.status().message(), HasSubstr(complaint));
}

TEST(MooncakeTrace, ReadsFieldsAndAliases) {
  const auto requests = ReadAll(WriteTrace(
      "aliases.jsonl",
      std::string(kGood) +
          "\n\n{\"created_time\": 40, \"input_tokens\": 512, \"output_tokens\": 7, \"hash_ids\": "
          "[1], "
          "\"session_id\": \"a\"}\r\n"
          "{\"delay_ms\": 10, \"input_length\": 0, \"hash_ids\": [], \"session_id\": \"a\"}"));
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[0].time_ms, 27);
  EXPECT_EQ(requests[0].input_tokens, 600u);
  EXPECT_EQ(requests[0].output_tokens, 5u);
  EXPECT_THAT(requests[0].blocks, ElementsAre(1, 2));
  EXPECT_EQ(requests[1].line, 3u);  // The empty line counts, and is no error.
  EXPECT_EQ(requests[2].time_ms, 50);
  EXPECT_EQ(requests[1].session, requests[2].session);
  EXPECT_THAT(requests[2].blocks, IsEmpty());
}

TEST(MooncakeTrace, MayBeginWithAByteOrderMark) {
  const auto requests = ReadAll(WriteTrace("mark.jsonl", std::string("\xEF\xBB\xBF") + kGood));
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].input_tokens, 600u);
}

TEST(MooncakeTrace, BrokenLinesAreCountedByNumberOrRefused) {
  const std::vector<std::pair<std::string, std::string>> broken = {
      {"{\"timestamp\": 1, ", "not a JSON object"},
      {"[1, 2]", "not a JSON object"},
      {R"({"timestamp": 1, "hash_ids": []})", "has no input_length"},
      {R"({"timestamp": 1, "input_length": -4, "hash_ids": []})", "not a whole number"},
      {R"({"timestamp": 1, "input_length": 10})", "has no hash_ids"},
      {R"({"timestamp": 1, "input_length": 10, "output_length": -1, "hash_ids": [1]})",
       "output_length is not a whole number"},
      {R"({"timestamp": 1, "input_length": 10, "hash_ids": [1, 2]})", "2 blocks of 512"},
      {R"({"timestamp": 1, "input_length": 10, "hash_ids": [[]]})", "neither a number"},
      {R"({"timestamp": "x", "input_length": 10, "hash_ids": [1]})", "timestamp is not a time"},
      {R"({"timestamp": 1, "input_length": 10, "hash_ids": [1], "block_size": 0})", "block_size"},
  };
  for (const auto& [line, complaint] : broken) {
    const std::string path =
        WriteTrace("broken.jsonl", std::string(kGood) + "\n" + line + "\n" + kGood + "\n");
    auto source = OpenTrace(path, {}).value();
    EXPECT_EQ(ReadAll(*source).size(), 2u) << line;
    EXPECT_EQ(source->issues().lines_skipped, 1u) << line;
    ExpectTold(*source, complaint);
    ExpectRefused(path, complaint);
  }
}

// Kept, since what counts blocks needs no time; but told, and refused where that is asked for.
TEST(MooncakeTrace, LinesWithoutATimeAndWithOneThatRunsBackAreTold) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {R"({"input_length": 10, "hash_ids": [1]})", "has no timestamp"},
      {R"({"timestamp": 20, "input_length": 10, "hash_ids": [1]})", "runs back by 7 ms"},
      {R"({"delay": -3, "input_length": 10, "hash_ids": [1]})", "runs back by 3 ms"},
  };
  for (const auto& [line, complaint] : wrong) {
    const std::string path =
        WriteTrace("late.jsonl", std::string(kGood) + "\n" + line + "\n" + kGood + "\n");
    auto source = OpenTrace(path, {}).value();
    const auto requests = ReadAll(*source);
    ASSERT_EQ(requests.size(), 3u) << line;
    EXPECT_EQ(requests[1].time_ms, 27);
    EXPECT_EQ(source->issues().lines_skipped, 0u);
    EXPECT_EQ(source->issues().lines_retimed, 1u) << line;
    ExpectTold(*source, complaint);
    ExpectRefused(path, complaint);
  }
}

TEST(MooncakeTrace, ADelayThatIsNoTimeIsABrokenLine) {
  auto source = OpenTrace(WriteTrace("delay.jsonl", std::string(kGood) + "\n" +
                              R"({"delay": "soon", "input_length": 10, "hash_ids": [1]})"),
                          {})
                    .value();
  EXPECT_EQ(ReadAll(*source).size(), 1u);
  EXPECT_EQ(source->issues().lines_skipped, 1u);
}

std::string BailianTurn(int chat, int parent, const char* time, const char* lengths_and_ids) {
  return "{\"chat_id\": " + std::to_string(chat) +
         ", \"parent_chat_id\": " + std::to_string(parent) + ", \"timestamp\": " + time +
         ", \"type\": \"text\", \"output_length\": 3, " + lengths_and_ids + "}\n";
}

TEST(BailianTrace, CountsInSecondsAndJoinsTurnsOfOneChat) {
  const auto requests = ReadAll(
      WriteTrace("bailian.jsonl",
                 BailianTurn(10, -1, "1.5", "\"input_length\": 20, \"hash_ids\": [5, 6]") +
                     BailianTurn(11, 10, "2.25", "\"input_length\": 40, \"hash_ids\": [5, 6, 7]") +
                     BailianTurn(12, 11, "3", "\"input_length\": 40, \"hash_ids\": [5, 6, 7]")));
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[1].time_ms, 2'250);
  EXPECT_EQ(requests[0].session, requests[2].session);
}

constexpr char kTwoSessions[] =
    R"({"id": "a", "block_size": 64, "req": [[0.0, 130, 9, 0, 1.5, 0, [1, 2]], [4.0, 200, 9, 0, 1, 0, [1, 1, 7, 2]]]}
{"id": "b", "block_size": 64, "req": [[1.0, 64, 9, 0, 1, 3, [1, 1]]]}
)";

TEST(SessionTrace, MergesSessionsByTimeAndKeepsTheirIdsApart) {
  const auto requests = ReadAll(WriteGzip("sessions.jsonl.gz", kTwoSessions));
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[0].blocks.size(), 2u);
  EXPECT_EQ(requests[1].time_ms, 1'000);
  EXPECT_EQ(requests[1].agent, 3u);
  EXPECT_NE(requests[1].blocks[0], requests[0].blocks[0]);
  EXPECT_EQ(requests[2].blocks[0], requests[0].blocks[0]);
  EXPECT_EQ(requests[2].blocks[2], requests[2].blocks[1] + 1);
}

TEST(SessionTrace, SpreadsStartsReproducibly) {
  const std::string path = WriteTrace("sessions.jsonl", kTwoSessions);
  const TraceOptions options{.spread_ms = 3'600'000, .seed = 4};
  const auto once = ReadAll(path, options);
  const auto again = ReadAll(path, options);
  ASSERT_EQ(once.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(once[i].time_ms, again[i].time_ms);
  EXPECT_GT(once.back().time_ms, 5'000);
}

TEST(SessionTrace, RefusesRunsThatThePromptCannotHold) {
  auto source = OpenTrace(
      WriteTrace(
          "huge.jsonl",
          std::string(kTwoSessions) +
              R"({"id": "c", "block_size": 64, "req": [[0, 64, 1, 0, 0, 0, [1, 99999999999]]]})"),
      {});
  ASSERT_THAT(source, IsOk());
  EXPECT_EQ(source.value()->issues().lines_skipped, 1u);
}

TEST(OpenTrace, JoinsBlocksByTheirLastId) {
  const std::string path = WriteTrace("sessions.jsonl", kTwoSessions);
  const auto joined = ReadAll(path, {.block_tokens = 128});
  EXPECT_EQ(joined[0].blocks.size(), 1u);  // 130 tokens: one full block of 128.
  EXPECT_EQ(joined[2].blocks.size(), 1u);  // 200 tokens: the tail is not full and has no id.
  const std::string ceiling = WriteTrace("ceiling.jsonl", std::string(kGood));
  EXPECT_THAT(ReadAll(ceiling, {.block_tokens = 1'024})[0].blocks, ElementsAre(2));
  EXPECT_THAT(OpenTrace(path, {.block_tokens = 100}), HasCode(kv::Code::kInvalid));
}

TEST(OpenTrace, SaysWhatItCannotRead) {
  EXPECT_THAT(OpenTrace("/nowhere/trace.jsonl", {}), HasCode(kv::Code::kNotFound));
  EXPECT_THAT(OpenTrace(::testing::TempDir(), {}), HasCode(kv::Code::kInvalid));
  EXPECT_THAT(OpenTrace(WriteTrace("empty", ""), {}), HasCode(kv::Code::kInvalid));
  EXPECT_THAT(OpenTrace(WriteTrace("csv", "a,b\n1,2\n"), {}), HasCode(kv::Code::kInvalid));
  EXPECT_THAT(ParseTraceFormat("parquet"), HasCode(kv::Code::kInvalid));
}

TEST(LineReader, ReportsATornGzipStream) {
  const std::string path = WriteGzip("torn.gz", std::string(200'000, 'x') + "\n" + kTwoSessions);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 20);
  LineReader lines = LineReader::Open(path).value();
  std::string_view line;
  auto outcome = lines.Next(line);
  while (outcome.ok() && outcome.value() == LineReader::Outcome::kLine) outcome = lines.Next(line);
  EXPECT_THAT(outcome, HasCode(kv::Code::kCorrupt));
}

TEST(TraceWriter, WritesWhatTheReadersRead) {
  const Request request{.time_ms = 12'345,
                        .input_tokens = 600,
                        .output_tokens = 9,
                        .session = 77,
                        .blocks = {UINT64_C(9'000'000'000'000'000'000), 5}};
  for (const std::string& line : {MooncakeLine(request, 512), BailianLine(request, 512, 1)}) {
    const auto read = ReadAll(WriteTrace("written.jsonl", line));
    ASSERT_EQ(read.size(), 1u) << line;
    EXPECT_EQ(read[0].time_ms, request.time_ms);
    EXPECT_EQ(read[0].input_tokens, request.input_tokens);
    EXPECT_EQ(read[0].blocks, request.blocks);
    EXPECT_NE(read[0].session, 0u);
  }
}

}  // namespace
}  // namespace cairn::tools
