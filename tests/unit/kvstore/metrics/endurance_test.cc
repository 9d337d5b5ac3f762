// Bytes a day from a counter: over what is known, at most a day.
#include "kvstore/metrics/endurance.h"

#include <gtest/gtest.h>

namespace cairn::kv {
namespace {

Instant Hour(int64_t hour) { return Instant{} + Seconds(hour * 3600); }

TEST(EnduranceMeter, SaysNothingBeforeItKnows) {
  EnduranceMeter meter;
  EXPECT_EQ(meter.BytesPerDay(), 0);
  meter.Note(Hour(0), 1'000'000);
  EXPECT_EQ(meter.BytesPerDay(), 0);
  meter.Note(Hour(0) + Seconds(9), 2'000'000);
  EXPECT_EQ(meter.BytesPerDay(), 0);
}

TEST(EnduranceMeter, ScalesAShortTimeToADay) {
  EnduranceMeter meter;
  meter.Note(Hour(5), 500);
  meter.Note(Hour(7), 700);
  EXPECT_DOUBLE_EQ(meter.BytesPerDay(), 200 * 12);
}

TEST(EnduranceMeter, ForgetsWhatIsOlderThanADay) {
  EnduranceMeter meter;
  for (int64_t hour = 0; hour <= 24; ++hour) meter.Note(Hour(hour), uint64_t(hour) * 1000);
  EXPECT_DOUBLE_EQ(meter.BytesPerDay(), 24'000);
  for (int64_t hour = 25; hour <= 60; ++hour) meter.Note(Hour(hour), 24'000);
  EXPECT_DOUBLE_EQ(meter.BytesPerDay(), 0);
}

TEST(EnduranceMeter, SurvivesASilence) {
  EnduranceMeter meter;
  meter.Note(Hour(0), 0);
  meter.Note(Hour(100), 100);
  EXPECT_DOUBLE_EQ(meter.BytesPerDay(), 24);
}

}  // namespace
}  // namespace cairn::kv
