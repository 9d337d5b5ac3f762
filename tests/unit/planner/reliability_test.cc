// Closed forms against each other, against a formula for two copies, and against the Monte Carlo.
#include "tools/planner/reliability.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/support/status_matchers.h"

namespace cairn::tools {
namespace {

using testing::HasCode;
constexpr double kHoursPerYear = 365 * 24;

TEST(Reliability, OfMirrorsIsTheTextbookFormula) {
  const FailureRates rates{.failures_per_year = 0.5, .rebuild_hours = 10};
  const double failure = 0.5 / kHoursPerYear;
  const double repair = 1.0 / 10;
  const double hours = (3 * failure + repair) / (2 * failure * failure);
  EXPECT_NEAR(Solve({1, 1}, rates).years_to_loss / (hours / kHoursPerYear), 1, 1e-9);
}

TEST(Reliability, WithoutParityIsTheFirstFailure) {
  const FailureRates rates{.failures_per_year = 0.1, .rebuild_hours = 1};
  EXPECT_NEAR(Solve({4, 0}, rates).years_to_loss, 1 / 0.4, 1e-9);
}

TEST(Reliability, MonteCarloAgreesWithTheClosedForm) {
  // From failures that are frequent enough to wait for, to the rates of real SSDs.
  for (const FailureRates& rates : {FailureRates{.failures_per_year = 200, .rebuild_hours = 40},
                                    FailureRates{.failures_per_year = 2, .rebuild_hours = 24},
                                    FailureRates{.failures_per_year = 0.01, .rebuild_hours = 1}}) {
    for (const CodeShape& shape : {CodeShape{10, 2}, {4, 2}, {8, 3}, {1, 1}, {1, 2}}) {
      const double exact = Solve(shape, rates).years_to_loss;
      const MonteCarlo played = Simulate(shape, rates, 40'000, 17);
      EXPECT_GT(played.relative_error, 0);
      EXPECT_LT(played.relative_error, 0.05) << CodeName(shape);
      EXPECT_NEAR(played.years_to_loss / exact, 1, 5 * played.relative_error + 0.01)
          << CodeName(shape) << " at " << rates.failures_per_year << " failures a year";
    }
  }
}

TEST(Reliability, ParityBeatsCopiesByteForByte) {
  const FailureRates rates;
  const Reliability wide = Solve({10, 2}, rates);
  const Reliability copies = Solve({1, 1}, rates);
  EXPECT_GT(wide.years_to_loss, 1'000 * copies.years_to_loss);  // At 1.2 times the bytes, not 2.
  EXPECT_LT(wide.unavailable_share, copies.unavailable_share);
  EXPECT_GT(Solve({8, 3}, rates).nines, wide.nines);
  FailureRates slow = rates;
  slow.rebuild_hours = 10;
  // Three lost shards need two rebuilds to be slow at once: ten times slower is a hundred times
  // worse.
  EXPECT_NEAR(wide.years_to_loss / Solve({10, 2}, slow).years_to_loss, 100, 2);
}

TEST(Reliability, UnavailabilityIsBinomial) {
  // Each holder is out for half an hour in each hour, so a mirror is unreadable a quarter of the
  // time, less what a share of 1/3 (0.5 / 1.5) makes of it.
  const FailureRates rates{.failures_per_year = 1e-9,
                           .rebuild_hours = 1e-9,
                           .outages_per_year = kHoursPerYear,
                           .outage_hours = 0.5};
  EXPECT_NEAR(Solve({1, 1}, rates).unavailable_share, 1.0 / 9, 1e-9);
}

TEST(Reliability, MonteCarloOfOutagesAgreesWithTheBinomialOne) {
  // Both kinds of outage, of very different length; each alone; and none but losses.
  for (const FailureRates& rates :
       {FailureRates{.failures_per_year = 5, .rebuild_hours = 10, .outages_per_year = 20,
                     .outage_hours = 2},
        FailureRates{.failures_per_year = 2, .rebuild_hours = 24, .outages_per_year = 12},
        FailureRates{.failures_per_year = 0.01, .outages_per_year = 4, .outage_hours = 0.2},
        FailureRates{.failures_per_year = 3, .rebuild_hours = 9, .outages_per_year = 0},
        FailureRates{.failures_per_year = 3, .rebuild_hours = 9, .outage_hours = 0}}) {
    for (const CodeShape& shape : {CodeShape{10, 2}, {8, 3}, {4, 0}, {1, 2}}) {
      const double exact = Solve(shape, rates).unavailable_share;
      const MonteCarlo played = Simulate(shape, rates, 40'000, 23);
      EXPECT_LT(played.unavailable_error, 0.05) << CodeName(shape);
      EXPECT_NEAR(played.unavailable_share / exact, 1, 5 * played.unavailable_error + 0.02)
          << CodeName(shape) << " at " << rates.outages_per_year << " outages a year";
    }
  }
}

TEST(ParseCode, ReadsCodesAndCopies) {
  EXPECT_EQ(ParseCode("10+2").value().shards(), 12u);
  EXPECT_EQ(ParseCode("3x").value().parity_shards, 2u);
  EXPECT_EQ(CodeName(ParseCode("3x").value()), "3 copies");
  for (const char* broken : {"", "10", "10+", "+2", "0+2", "0x", "10+2+1", "999+1", "x", "-1+2"}) {
    EXPECT_THAT(ParseCode(broken), HasCode(kv::Code::kInvalid)) << broken;
  }
}

}  // namespace
}  // namespace cairn::tools
