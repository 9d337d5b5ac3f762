// Leases end by deadline, release and session, count once a stripe, and are bounded.
#include "kvstore/client/lease_table.h"

#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace cairn::kv {
namespace {

using testing::HasCode;
using testing::IsOk;

constexpr Instant kStart{1'000'000'000};
constexpr Nanos kSecond = Seconds(1);

LeaseTable::Stripe StripeOf(uint64_t number, uint64_t bytes = 100) {
  return {StripeId{{number, number}}, bytes};
}

class LeaseTableTest : public ::testing::Test {
 protected:
  LeaseId Grant(std::vector<LeaseTable::Stripe> stripes, SessionId session = {},
                Nanos duration = kSecond) {
    return table.Grant(session, stripes, duration, kNever, now);
  }
  bool IsLeased(uint64_t number) { return table.IsLeased(StripeOf(number).id, now); }

  Random random{1};
  LeaseTable table{random, {.leases_max = 4, .stripes_max = 8, .bytes_max = 1000}};
  Instant now = kStart;
};

TEST_F(LeaseTableTest, HoldsItsStripesUntilTheDeadlineAndNoLonger) {
  const LeaseId lease = Grant({StripeOf(1), StripeOf(2)});
  EXPECT_NE(lease.value, 0u);
  EXPECT_TRUE(IsLeased(1));
  EXPECT_TRUE(IsLeased(2));
  EXPECT_FALSE(IsLeased(3));
  now = kStart + kSecond - Nanos{1};
  EXPECT_TRUE(IsLeased(1));
  now = kStart + kSecond;
  EXPECT_FALSE(IsLeased(1));
  EXPECT_EQ(table.Stats(now).expired, 1u);
  EXPECT_EQ(table.Stats(now).active, 0u);
  EXPECT_EQ(table.Stats(now).bytes, 0u);
}

TEST_F(LeaseTableTest, KeepsAStripeWhileAnyOfItsLeasesLives) {
  const LeaseId first = Grant({StripeOf(1)});
  const LeaseId second = Grant({StripeOf(1)});
  EXPECT_EQ(table.Stats(now).bytes, 100u);
  table.Release(first, {}, now);
  EXPECT_TRUE(IsLeased(1));
  table.Release(second, {}, now);
  EXPECT_FALSE(IsLeased(1));
  EXPECT_EQ(table.Stats(now).bytes, 0u);
}

TEST_F(LeaseTableTest, ASessionMayEndAfterItReleased) {
  const SessionId session = table.OpenSession();
  const LeaseId released = Grant({StripeOf(1)}, session);
  Grant({StripeOf(2)}, session);
  table.Release(released, session, now);
  EXPECT_FALSE(IsLeased(1));
  table.EndSession(session, now);
  EXPECT_FALSE(IsLeased(2));
  EXPECT_EQ(table.Stats(now).active, 0u);
}

TEST_F(LeaseTableTest, RenewalMovesTheDeadlineButNotBeyondAnExpiry) {
  const Instant expiry = kStart + Seconds(3);
  const LeaseId lease = table.Grant({}, {StripeOf(1)}, Seconds(2), expiry, now);
  now = kStart + kSecond;
  EXPECT_THAT(table.Renew(lease, {}, Seconds(60), now), IsOk());
  EXPECT_EQ(table.Left(lease, now), Seconds(2));
  now = expiry;
  EXPECT_FALSE(IsLeased(1));
  EXPECT_THAT(table.Renew(lease, {}, kSecond, now), HasCode(Code::kNotFound));
}

TEST_F(LeaseTableTest, ALeaseThatExpiresBeforeItsOwnDurationEndsThen) {
  const LeaseId lease = table.Grant({}, {StripeOf(1)}, Seconds(60), kStart + kSecond, now);
  EXPECT_EQ(table.Left(lease, now), kSecond);
  EXPECT_EQ(table.Grant({}, {StripeOf(2)}, kSecond, now, now).value, 0u);
}

TEST_F(LeaseTableTest, ASessionTakesItsLeasesWithIt) {
  const SessionId mine = table.OpenSession();
  const SessionId other = table.OpenSession();
  const LeaseId lease = Grant({StripeOf(1)}, mine);
  const LeaseId kept = Grant({StripeOf(2)}, other);
  table.EndSession(mine, now);
  EXPECT_FALSE(IsLeased(1));
  EXPECT_TRUE(IsLeased(2));
  EXPECT_EQ(table.Stats(now).ended, 1u);
  EXPECT_THAT(table.Renew(lease, mine, kSecond, now), HasCode(Code::kNotFound));
  EXPECT_EQ(Grant({StripeOf(3)}, mine).value, 0u) << "the session has ended";
  table.EndSession(mine, now);
  EXPECT_THAT(table.Renew(kept, other, kSecond, now), IsOk());
}

TEST_F(LeaseTableTest, OnlyTheOwnerRenewsAndReleases) {
  const SessionId mine = table.OpenSession();
  const SessionId other = table.OpenSession();
  const LeaseId lease = Grant({StripeOf(1)}, mine);
  EXPECT_THAT(table.Renew(lease, other, kSecond, now), HasCode(Code::kNotFound));
  table.Release(lease, other, now);
  table.Release(lease, {}, now);
  EXPECT_TRUE(IsLeased(1));
}

TEST_F(LeaseTableTest, RefusesBeyondItsLimitsAndCountsIt) {
  EXPECT_EQ(Grant({StripeOf(1, 1001)}).value, 0u) << "bytes";
  EXPECT_NE(Grant({StripeOf(1, 600)}).value, 0u);
  EXPECT_EQ(Grant({StripeOf(2, 600)}).value, 0u) << "bytes in all";
  EXPECT_NE(Grant({StripeOf(1, 600)}).value, 0u) << "the same stripe costs nothing more";
  EXPECT_EQ(table.Stats(now).refused, 2u);
  EXPECT_NE(Grant({StripeOf(3)}).value, 0u);
  EXPECT_NE(Grant({StripeOf(3)}).value, 0u);
  EXPECT_EQ(Grant({StripeOf(3)}).value, 0u) << "leases";
  now = now + kSecond;
  EXPECT_NE(Grant({StripeOf(2, 600)}).value, 0u) << "room again once they have ended";
}

TEST_F(LeaseTableTest, RefusesTooManyStripes) {
  std::vector<LeaseTable::Stripe> stripes;
  for (uint64_t i = 0; i < 9; ++i) stripes.push_back(StripeOf(i, 1));
  EXPECT_EQ(Grant(stripes).value, 0u);
  stripes.pop_back();
  EXPECT_NE(Grant(stripes).value, 0u);
  EXPECT_EQ(Grant({StripeOf(0, 1)}).value, 0u);
}

TEST_F(LeaseTableTest, ForgetsAStripeThatIsGone) {
  const LeaseId lease = Grant({StripeOf(1, 600), StripeOf(2)});
  table.Forget(StripeOf(1).id);
  EXPECT_FALSE(IsLeased(1));
  EXPECT_TRUE(IsLeased(2));
  EXPECT_EQ(table.Stats(now).bytes, 100u);
  table.Release(lease, {}, now);
  EXPECT_EQ(table.Stats(now).bytes, 0u);
}

TEST_F(LeaseTableTest, ManyClientsThatDieLeaveNothingBehind) {
  for (uint64_t i = 0; i < 1000; ++i) {
    const SessionId session = table.OpenSession();
    EXPECT_NE(Grant({StripeOf(i), StripeOf(i + 1)}, session).value, 0u);
    if (i % 3 == 0) table.EndSession(session, now);
    now = now + kSecond;
    table.EndSession(session, now);
  }
  EXPECT_EQ(table.Stats(now).active, 0u);
  EXPECT_EQ(table.Stats(now).bytes, 0u);
  EXPECT_EQ(table.memory_bytes(), 0u);
}

}  // namespace
}  // namespace cairn::kv
