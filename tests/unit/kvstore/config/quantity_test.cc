// Sizes and times: what is read, what is refused, and that writing is the inverse of reading.
#include "kvstore/config/quantity.h"

#include <gmock/gmock.h>

#include <vector>

#include "kvstore/base/units.h"

namespace cairn::kv {
namespace {

TEST(ParseBytes, ReadsWhatPeopleWrite) {
  const std::vector<std::pair<const char*, uint64_t>> table = {
      {"0", 0},           {"0 B", 0},         {"1 B", 1},          {"64 MiB", 64 * kMiB},
      {"64MiB", 64 * kMiB}, {"1.5 KiB", 1536}, {"2 GB", 2'000'000'000},
      {"0.25 TiB", 256 * kGiB}, {"100 TiB", 100 * kTiB}};
  for (const auto& [text, bytes] : table) {
    const auto parsed = ParseBytes(text);
    ASSERT_TRUE(parsed.ok()) << text << ": " << parsed.status().message();
    EXPECT_EQ(parsed.value(), bytes) << text;
  }
}

TEST(ParseBytes, RefusesWhatIsUnclear) {
  for (const char* text : {"", " ", "64", "MiB", "-1 MiB", "64 mib", "64 MiB ", "1e3 B",
                           "1.2.3 MiB", "64 MiB/s", ".", "0.3 B", "1.00001 KiB", "99999999 TiB",
                           "9999999999999999999 B", "0x10 B"}) {
    const auto parsed = ParseBytes(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.code(), Code::kInvalid);
    EXPECT_THAT(parsed.status().message(), testing::HasSubstr(text));
  }
}

TEST(ParseDuration, ReadsAndRefuses) {
  EXPECT_EQ(ParseDuration("50 us").value(), Micros(50));
  EXPECT_EQ(ParseDuration("1.5 s").value(), Millis(1500));
  EXPECT_EQ(ParseDuration("3 d").value(), Seconds(3 * 86'400));
  EXPECT_EQ(ParseDuration("2min").value(), Seconds(120));
  EXPECT_EQ(ParseDuration("0").value(), Nanos{0});
  for (const char* text : {"", "5", "5 m", "5 sec", "-5 s", "0.1 ns", "1000000 d"}) {
    EXPECT_FALSE(ParseDuration(text).ok()) << text;
  }
}

TEST(Format, IsTheInverseOfParse) {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{1000}, uint64_t{1024},
                               1536 * kKiB, 72 * kMiB, kTiB + 1, 5 * kTiB}) {
    EXPECT_EQ(ParseBytes(FormatBytes(bytes)).value(), bytes) << FormatBytes(bytes);
  }
  for (const int64_t nanos : {int64_t{0}, int64_t{1}, int64_t{50'000}, int64_t{1'500'000'000},
                              int64_t{60'000'000'000}, int64_t{86'400'000'000'000}}) {
    EXPECT_EQ(ParseDuration(FormatDuration({nanos})).value(), Nanos{nanos});
  }
  EXPECT_EQ(FormatBytes(64 * kMiB), "64 MiB");
  EXPECT_EQ(FormatDuration(Millis(250)), "250 ms");
}

TEST(Rough, HasThreeDigits) {
  EXPECT_EQ(RoughBytes(0), "0 B");
  EXPECT_EQ(RoughBytes(1023), "1023 B");
  EXPECT_EQ(RoughBytes(1024), "1.00 KiB");
  EXPECT_EQ(RoughBytes(1.456 * static_cast<double>(kTiB)), "1.46 TiB");
  EXPECT_EQ(RoughBytes(1023.9 * static_cast<double>(kMiB)), "1.00 GiB");
  EXPECT_EQ(RoughBytes(12.34 * static_cast<double>(kMiB)), "12.3 MiB");
  EXPECT_EQ(RoughDuration(Nanos{999}), "999 ns");
  EXPECT_EQ(RoughDuration(Micros(12'340)), "12.3 ms");
  EXPECT_EQ(RoughDuration(Seconds(3 * 86'400)), "3.00 d");
}

}  // namespace
}  // namespace cairn::kv
