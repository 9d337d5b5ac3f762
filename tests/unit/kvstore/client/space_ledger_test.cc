// Sums of what is stored and kept, and the limits of promises.
#include "kvstore/client/space_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kvstore/base/random.h"
#include "tests/support/status_matchers.h"

namespace cairn::kv {
namespace {

using ::testing::HasSubstr;
using testing::HasCode;
using testing::IsOk;

constexpr NamespaceId kOne{{1, 1}};
constexpr NamespaceId kTwo{{2, 2}};
constexpr uint32_t kNow = 1000;
constexpr KeepLimits kLimits{.quota_bytes = 10 * kMiB, .data_shards = 10, .parity_shards = 2};

TEST(SpaceLedger, AddsUpWhatComesAndGoes) {
  SpaceLedger ledger(UINT64_MAX);
  ledger.Add(kOne, {1000, 0}, kLimits, kNow);
  ledger.Add(kOne, {500, kNow + 10}, kLimits, kNow);
  ledger.Add(kTwo, {7, 0}, kLimits, kNow);
  EXPECT_EQ(ledger.UsageOf(kOne, kNow).stored_bytes, 1500u);
  EXPECT_EQ(ledger.UsageOf(kOne, kNow).stripes, 2u);
  EXPECT_EQ(ledger.UsageOf(kOne, kNow).kept_bytes, 500u);
  EXPECT_EQ(ledger.UsageOf(kOne, kNow + 10).kept_bytes, 0u) << "the promise is over";
  ledger.Remove(kOne, {500, kNow + 10}, kNow);
  ledger.Remove(kOne, {1000, 0}, kNow);
  EXPECT_EQ(ledger.UsageOf(kOne, kNow).stored_bytes, 0u);
  EXPECT_EQ(ledger.UsageOf(kTwo, kNow).stored_bytes, 7u);
}

TEST(SpaceLedger, RefusesPromisesBeyondTheQuota) {
  SpaceLedger ledger(UINT64_MAX);
  const Status none = ledger.Keep(kOne, 1, {.quota_bytes = 0}, kNow);
  EXPECT_THAT(none, HasCode(Code::kOverloaded));
  EXPECT_THAT(none.message(), HasSubstr("quota"));
  EXPECT_THAT(ledger.Keep(kOne, 6 * kMiB, kLimits, kNow), IsOk());
  const Status full = ledger.Keep(kOne, 5 * kMiB, kLimits, kNow);
  EXPECT_THAT(full, HasCode(Code::kOverloaded));
  EXPECT_THAT(full.message(), HasSubstr("6 MiB"));
  EXPECT_THAT(ledger.Keep(kOne, 4 * kMiB, kLimits, kNow), IsOk());
  ledger.Unkeep(kOne, 6 * kMiB, kLimits);
  EXPECT_THAT(ledger.Keep(kOne, 6 * kMiB, kLimits, kNow), IsOk());
}

TEST(SpaceLedger, AllPromisesTogetherOccupyAtMostTheirShare) {
  SpaceLedger ledger(12 * kMiB);
  ledger.Add(kOne, {5 * kMiB, kNow + 10}, kLimits, kNow);  // Occupies 6 MiB.
  EXPECT_THAT(ledger.Keep(kTwo, 6 * kMiB, kLimits, kNow), HasCode(Code::kOverloaded));
  EXPECT_THAT(ledger.Keep(kTwo, 5 * kMiB, kLimits, kNow), IsOk());
  EXPECT_THAT(ledger.Keep(kTwo, 64 * kKiB, kLimits, kNow), HasCode(Code::kOverloaded));
  EXPECT_THAT(ledger.Keep(kTwo, 5 * kMiB, kLimits, kNow + 10), IsOk()) << "the first one is over";
}

TEST(SpaceLedger, RaisingAPromiseCountsItOnce) {
  SpaceLedger ledger(UINT64_MAX);
  ledger.Add(kOne, {8 * kMiB, 0}, kLimits, kNow);
  EXPECT_THAT(ledger.Raise(kOne, {8 * kMiB, 0}, kNow + 10, kLimits, kNow), IsOk());
  EXPECT_THAT(ledger.Raise(kOne, {8 * kMiB, kNow + 10}, kNow + 20, kLimits, kNow), IsOk());
  EXPECT_EQ(ledger.UsageOf(kOne, kNow + 15).kept_bytes, 8 * kMiB);
  ledger.Add(kOne, {8 * kMiB, 0}, kLimits, kNow);
  EXPECT_THAT(ledger.Raise(kOne, {8 * kMiB, 0}, kNow + 10, kLimits, kNow),
              HasCode(Code::kOverloaded));
  ledger.Remove(kOne, {8 * kMiB, kNow + 20}, kNow);
  EXPECT_EQ(ledger.UsageOf(kOne, kNow).kept_bytes, 0u);
}

TEST(SpaceLedger, SurvivesAClockThatStepsBack) {
  SpaceLedger ledger(UINT64_MAX);
  ledger.Add(kOne, {100, kNow + 10}, kLimits, kNow);
  EXPECT_EQ(ledger.UsageOf(kOne, kNow + 20).kept_bytes, 0u);
  EXPECT_EQ(ledger.UsageOf(kOne, kNow).kept_bytes, 0u);
  ledger.Remove(kOne, {100, kNow + 10}, kNow);
  EXPECT_EQ(ledger.UsageOf(kOne, kNow).stored_bytes, 0u);
}

TEST(SpaceLedger, EndsAtZeroAfterAnyHistory) {
  Random random(3);
  SpaceLedger ledger(UINT64_MAX);
  const KeepLimits limits{.quota_bytes = UINT64_MAX, .data_shards = 10, .parity_shards = 2};
  std::vector<SpaceLedger::Stripe> stripes;
  for (int i = 0; i < 2000; ++i) {
    const bool grows = stripes.empty() || random.Chance(1, 2);
    if (grows) {
      const auto until = static_cast<uint32_t>(random.Chance(1, 2) ? kNow + random.Below(5) : 0);
      stripes.push_back({1 + random.Below(kMiB), until});
      ledger.Add(kOne, stripes.back(), limits, kNow);
    } else {
      const size_t at = random.Below(stripes.size());
      const auto until = static_cast<uint32_t>(kNow + random.Below(9));
      if (random.Chance(1, 3)) {
        EXPECT_THAT(ledger.Raise(kOne, stripes[at], until, limits, kNow), IsOk());
        stripes[at].keep_until = std::max(stripes[at].keep_until, until);
        continue;
      }
      ledger.Remove(kOne, stripes[at], kNow);
      stripes.erase(stripes.begin() + static_cast<ptrdiff_t>(at));
    }
    uint64_t stored = 0;
    uint64_t kept = 0;
    for (const auto& stripe : stripes) {
      stored += stripe.payload;
      kept += stripe.keep_until > kNow ? stripe.payload : 0;
    }
    ASSERT_EQ(ledger.UsageOf(kOne, kNow).stored_bytes, stored) << i;
    ASSERT_EQ(ledger.UsageOf(kOne, kNow).kept_bytes, kept) << i;
  }
  for (const auto& stripe : stripes) ledger.Remove(kOne, stripe, kNow);
  EXPECT_EQ(ledger.UsageOf(kOne, kNow).stored_bytes, 0u);
  EXPECT_EQ(ledger.KeptBytes(kNow), 0u);
}

}  // namespace
}  // namespace cairn::kv
