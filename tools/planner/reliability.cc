// The birth-death chain of lost shards: solved exactly, and simulated by regenerative cycles.
#include "tools/planner/reliability.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "kvstore/base/random.h"

namespace cairn::tools {
namespace {

constexpr double kHoursPerYear = 365 * 24;
// While degraded, the next event of a simulated history is a failure with this chance.
constexpr double kForcedFailure = 0.5;

// Rates per hour with `lost` shards lost.
struct Chain {
  CodeShape shape;
  double failure = 0;
  double repair = 0;

  Chain(const CodeShape& code, const FailureRates& rates)
      : shape(code),
        failure(rates.failures_per_year / kHoursPerYear),
        repair(1 / rates.rebuild_hours) {}
  double Up(uint32_t lost) const { return failure * (shape.shards() - lost); }
  double Down(uint32_t lost) const { return repair * lost; }
};

// The chance that more than m of n shards are out at a random moment.
double TooManyOut(const CodeShape& shape, double out) {
  double chance = 0;
  double combinations = 1;
  const uint32_t n = shape.shards();
  for (uint32_t lost = 0; lost <= n; ++lost) {
    if (lost > shape.parity_shards) {
      chance += combinations * std::pow(out, lost) * std::pow(1 - out, n - lost);
    }
    combinations = combinations * (n - lost) / (lost + 1);
  }
  return chance;
}

}  // namespace

kv::Result<CodeShape> ParseCode(const std::string& text) {
  CodeShape shape{0, 0};
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, shape.data_shards);
  if (first.ec == std::errc() && first.ptr + 1 == end && *first.ptr == 'x' &&
      shape.data_shards > 0) {
    shape = {1, shape.data_shards - 1};
  } else if (first.ec == std::errc() && first.ptr < end && *first.ptr == '+') {
    const auto second = std::from_chars(first.ptr + 1, end, shape.parity_shards);
    if (second.ec != std::errc() || second.ptr != end) shape.data_shards = 0;
  } else {
    shape.data_shards = 0;
  }
  if (shape.data_shards == 0 || shape.data_shards > 64 || shape.parity_shards > 32) {
    return kv::Status(kv::Code::kInvalid,
                      "'" + text +
                          "' is no code: write 10+2 for 10 data and 2 parity shards, or 3x "
                          "for three copies");
  }
  return shape;
}

std::string CodeName(const CodeShape& shape) {
  if (shape.data_shards == 1) return fmt::format("{} copies", shape.shards());
  return fmt::format("{}+{}", shape.data_shards, shape.parity_shards);
}

Reliability Solve(const CodeShape& shape, const FailureRates& rates) {
  const Chain chain(shape, rates);
  // step = mean hours from `lost` to `lost + 1` lost shards for the first time.
  double hours = 0;
  double step = 0;
  for (uint32_t lost = 0; lost <= shape.parity_shards; ++lost) {
    step = 1 / chain.Up(lost) + (lost == 0 ? 0 : chain.Down(lost) / chain.Up(lost) * step);
    hours += step;
  }
  Reliability result;
  result.years_to_loss = hours / kHoursPerYear;
  result.loss_per_year = -std::expm1(-rates.stripe_sets / result.years_to_loss);
  // A loss of a whole stripe set takes all its blocks.
  result.nines = -std::log10(-std::expm1(-1 / result.years_to_loss));
  const double outage = rates.outages_per_year * rates.outage_hours / kHoursPerYear;
  const double lost = rates.failures_per_year * rates.rebuild_hours / kHoursPerYear;
  result.unavailable_share = TooManyOut(shape, (outage + lost) / (1 + outage + lost));
  return result;
}

MonteCarlo Simulate(const CodeShape& shape, const FailureRates& rates, uint64_t cycles,
                    uint64_t seed) {
  const Chain chain(shape, rates);
  kv::Random random(seed);
  double cycle_hours = 0;
  double losses = 0;
  double losses_squared = 0;
  for (uint64_t cycle = 0; cycle < cycles; ++cycle) {
    // A cycle is from all shards healthy to all healthy again, or to a loss. Its length is taken
    // from the true process, its chance of loss from the forced one.
    cycle_hours += -std::log1p(-random.Unit()) / chain.Up(0);
    for (uint32_t lost = 1; lost != 0 && lost <= shape.parity_shards;) {
      const double up = chain.Up(lost);
      const double all = up + chain.Down(lost);
      cycle_hours += -std::log1p(-random.Unit()) / all;
      lost = random.Unit() < up / all ? lost + 1 : lost - 1;
    }
    double weight = 1;
    uint32_t lost = 1;
    while (lost != 0 && lost <= shape.parity_shards) {
      const double failure = chain.Up(lost) / (chain.Up(lost) + chain.Down(lost));
      const bool failed = random.Unit() < kForcedFailure;
      weight *= failed ? failure / kForcedFailure : (1 - failure) / (1 - kForcedFailure);
      lost += failed ? 1 : UINT32_MAX;
    }
    const double loss = lost == 0 ? 0 : weight;
    losses += loss;
    losses_squared += loss * loss;
  }
  const auto count = static_cast<double>(cycles);
  const double mean = losses / count;
  MonteCarlo result{.cycles = cycles};
  if (mean <= 0) return result;
  result.years_to_loss = cycle_hours / count / mean / kHoursPerYear;
  result.relative_error =
      std::sqrt(std::max(0.0, losses_squared / count - mean * mean) / count) / mean;
  return result;
}

}  // namespace cairn::tools
