// Which stripes are admitted, by each policy.
#include "kvstore/client/admission.h"

#include <gtest/gtest.h>

#include "kvstore/base/units.h"

namespace cairn::kv {
namespace {

constexpr NamespaceId kSpace{{1, 2}};

BlockId Block(uint64_t n) { return BlockId{{n * 0x9e3779b97f4a7c15u, n}}; }
Instant At(double seconds) { return Instant{static_cast<int64_t>(seconds * 1e9)}; }

TEST(Admission, AllAdmitsAllAndRemembersNothing) {
  Admission admission({}, kGiB, At(0));
  for (uint64_t i = 0; i < 100; ++i) EXPECT_TRUE(admission.Admit(kSpace, Block(i), kGiB, At(0)));
  EXPECT_EQ(admission.memory_bytes(), 0u);
}

TEST(Admission, SecondSightWritesWhatComesTwice) {
  Admission admission({.policy = AdmissionPolicy::kSecondSight, .sightings_max = 1000}, kGiB,
                      At(0));
  EXPECT_FALSE(admission.Admit(kSpace, Block(1), 1, At(0)));
  EXPECT_FALSE(admission.Admit(kSpace, Block(2), 1, At(0)));
  EXPECT_FALSE(admission.Admit(NamespaceId{{3, 4}}, Block(1), 1, At(0)));  // Another's block.
  EXPECT_TRUE(admission.Admit(kSpace, Block(1), 1, At(1)));
  EXPECT_TRUE(admission.Admit(kSpace, Block(2), 1, At(1)));
  EXPECT_FALSE(admission.Admit(kSpace, Block(1), 1, At(2)));  // Evicted since: it starts anew.
  EXPECT_EQ(admission.memory_bytes(), 4000u);
}

TEST(Admission, SightingsAreBoundedAndMayBeForgotten) {
  Admission admission({.policy = AdmissionPolicy::kSecondSight, .sightings_max = 16}, kGiB, At(0));
  uint64_t admitted = 0;
  for (int round = 0; round < 2; ++round) {
    for (uint64_t i = 0; i < 1000; ++i) admitted += admission.Admit(kSpace, Block(i), 1, At(0));
  }
  EXPECT_LT(admitted, 20u);
}

TEST(Admission, TheBudgetIsSoManyDriveWritesADay) {
  const uint64_t capacity = 240 * kGiB;  // 10 GiB an hour.
  Admission admission({.policy = AdmissionPolicy::kWriteBudget, .drive_writes_per_day = 1},
                      capacity, At(0));
  const auto admit_all = [&](double seconds) {
    uint64_t bytes = 0;
    while (admission.Admit(kSpace, Block(1), 16 * kMiB, At(seconds))) bytes += 16 * kMiB;
    return bytes;
  };
  EXPECT_EQ(admit_all(0), 10 * kGiB);       // What an hour has saved up.
  EXPECT_EQ(admit_all(0), 0u);
  EXPECT_NEAR(static_cast<double>(admit_all(1800)), 5.0 * kGiB, 16.0 * kMiB);
  EXPECT_EQ(admit_all(1800 + 24 * 3600), 10 * kGiB);  // No more than an hour's.
  EXPECT_EQ(admit_all(0), 0u);                        // A clock that goes back saves nothing.
}

TEST(Admission, ASmallBudgetStillAdmitsTheLargestStripe) {
  Admission admission({.policy = AdmissionPolicy::kWriteBudget, .drive_writes_per_day = 0.001},
                      kGiB, At(0));
  EXPECT_TRUE(admission.Admit(kSpace, Block(1), 77 * kMiB, At(0)));
  EXPECT_FALSE(admission.Admit(kSpace, Block(2), 77 * kMiB, At(0)));
}

}  // namespace
}  // namespace cairn::kv
