// Times, shapes and shares as text.
#include "tools/cairn/format.h"

#include <gmock/gmock.h>

#include "tests/support/status_matchers.h"

namespace cairn::tools {
namespace {

using testing::HasCode;
using testing::IsOk;

TEST(Times, AreWrittenAndReadInUtc) {
  const kv::UnixMillis at{1'798'761'599'000};
  EXPECT_EQ(FormatTime(at), "2026-12-31T23:59:59Z");
  EXPECT_EQ(ParseTime("2026-12-31T23:59:59Z", {0}).value(), at);
  EXPECT_EQ(ParseTime("3 d", {1000}).value().value, 1000 + 3 * 86'400'000);
  EXPECT_EQ(FormatTime({0}), "-");
  for (const char* text : {"", "tomorrow", "2026-12-31", "2026-12-31T23:59:59Zx"}) {
    EXPECT_THAT(ParseTime(text, {0}), HasCode(kv::Code::kInvalid)) << text;
  }
}

TEST(Times, FromNow) {
  EXPECT_EQ(FromNow({61'000}, {1'000}), "in 1.00 min");
  EXPECT_EQ(FromNow({1'000}, {3'500}), "2.50 s ago");
  EXPECT_EQ(FromNow({0}, {5}), "-");
}

TEST(Shapes, ReadAndWritten) {
  kv::NamespaceOptions options;
  ASSERT_THAT(ParseShape("4+2", options), IsOk());
  EXPECT_EQ(ShapeName(options), "4+2");
  for (const char* text :
       {"", "4", "+2", "4+", "4+2+1", "0+2", "33+2", "4+9", "4-2", "a+b", " 4+2"}) {
    EXPECT_THAT(ParseShape(text, options), HasCode(kv::Code::kInvalid)) << text;
  }
  EXPECT_EQ(ShapeName(options), "4+2");
}

TEST(Percents, OfNothingIsADash) {
  EXPECT_EQ(Percent(1, 3), "33.3 %");
  EXPECT_EQ(Percent(0, 0), "-");
}

TEST(JsonText, SurvivesBytesThatAreNotUtf8) {
  EXPECT_EQ(ToText(Json{{"name", "a\xff"}}), "{\n  \"name\": \"a\xef\xbf\xbd\"\n}\n");
}

TEST(JsonText, StatsHaveEveryCounter) {
  kv::StoreStats stats;
  stats.puts = 3;
  const Json json = ToJson(stats);
  EXPECT_EQ(json["puts"], 3);
  EXPECT_EQ(json.size() * sizeof(uint64_t), sizeof(kv::StoreStats));
}

}  // namespace
}  // namespace cairn::tools
