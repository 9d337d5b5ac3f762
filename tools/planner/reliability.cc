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

namespace {

// A mean over cycles, and how far it may be off.
class Mean {
 public:
  void Add(double value) {
    ++count_;
    sum_ += value;
    squares_ += value * value;
  }
  double value() const { return sum_ / count_; }
  // One standard deviation, as a share.
  double Error() const {
    if (value() <= 0) return 0;
    return std::sqrt(std::max(0.0, squares_ / count_ - value() * value()) / count_) / value();
  }

 private:
  double count_ = 0;
  double sum_ = 0;
  double squares_ = 0;
};

double Exponential(kv::Random& random, double rate) { return -std::log1p(-random.Unit()) / rate; }

// From all shards healthy to all healthy again, or to a loss. Its length is taken from the true
// process, its chance of a loss from the forced one.
struct LossCycle {
  const Chain& chain;
  kv::Random& random;

  double Hours() const {
    double hours = Exponential(random, chain.Up(0));
    for (uint32_t lost = 1; lost != 0 && lost <= chain.shape.parity_shards;) {
      const double up = chain.Up(lost);
      const double all = up + chain.Down(lost);
      hours += Exponential(random, all);
      lost = random.Unit() < up / all ? lost + 1 : lost - 1;
    }
    return hours;
  }
  double Losses() const {
    double weight = 1;
    uint32_t lost = 1;
    while (lost != 0 && lost <= chain.shape.parity_shards) {
      const double failure = chain.Up(lost) / (chain.Up(lost) + chain.Down(lost));
      const bool failed = random.Unit() < kForcedFailure;
      weight *= failed ? failure / kForcedFailure : (1 - failure) / (1 - kForcedFailure);
      lost += failed ? 1 : UINT32_MAX;
    }
    return lost == 0 ? 0 : weight;
  }
};

// Shards that are out for a while, and those that are lost and being rebuilt: each comes back after
// its own time.
class OutageCycle {
 public:
  OutageCycle(const CodeShape& shape, const FailureRates& rates, kv::Random& random)
      : shape_(shape), random_(random) {
    failures_ = rates.failures_per_year / kHoursPerYear;
    rebuilds_ = 1 / rates.rebuild_hours;
    if (rates.outage_hours <= 0) return;
    outages_ = rates.outages_per_year / kHoursPerYear;
    returns_ = 1 / rates.outage_hours;
  }

  // Of a cycle from all healthy to all healthy again, in the true process.
  double Hours() {
    double hours = Exponential(random_, Up());
    Step(true);
    while (out_ + lost_ > 0) {
      hours += Exponential(random_, Up() + Down());
      Step(random_.Unit() < Up() / (Up() + Down()));
    }
    return hours;
  }
  // Of these, with more shards away than parity replaces: forced until it happens for the first
  // time, true from then on.
  double UnreadableHours() {
    double weight = ForcedUp();
    while (out_ + lost_ > 0 && !IsUnreadable()) {
      const double up = Up() / (Up() + Down());
      if (random_.Unit() < kForcedFailure) {
        weight *= up / kForcedFailure * ForcedUp();
      } else {
        weight *= (1 - up) / (1 - kForcedFailure);
        Step(false);
      }
    }
    double hours = 0;
    while (out_ + lost_ > 0) {
      if (IsUnreadable()) hours += 1 / (Up() + Down());
      Step(random_.Unit() < Up() / (Up() + Down()));
    }
    return hours * weight;
  }

 private:
  double Up() const { return (shape_.shards() - out_ - lost_) * (failures_ + outages_); }
  double Down() const { return out_ * returns_ + lost_ * rebuilds_; }
  bool IsUnreadable() const { return out_ + lost_ > shape_.parity_shards; }
  // One more is out. Of either kind half as often as it happens, half as often as it is seen out:
  // what is rare and lasts is drawn, too. Returns the weight of that.
  double ForcedUp() {
    const double all = failures_ + outages_;
    const double long_lost = failures_ / rebuilds_;
    const double long_out = outages_ > 0 ? outages_ / returns_ : 0;
    const double lost_share = (failures_ / all + long_lost / (long_lost + long_out)) / 2;
    const bool is_lost = random_.Unit() < lost_share;
    ++(is_lost ? lost_ : out_);
    return is_lost ? failures_ / all / lost_share : outages_ / all / (1 - lost_share);
  }
  void Step(bool up) {
    const double drawn = random_.Unit();
    if (up) {
      ++(drawn < outages_ / (failures_ + outages_) ? out_ : lost_);
    } else {
      --(drawn < out_ * returns_ / Down() ? out_ : lost_);
    }
  }

  const CodeShape shape_;
  kv::Random& random_;
  double failures_ = 0;
  double rebuilds_ = 0;
  double outages_ = 0;
  double returns_ = 0;
  uint32_t out_ = 0;
  uint32_t lost_ = 0;
};

}  // namespace

MonteCarlo Simulate(const CodeShape& shape, const FailureRates& rates, uint64_t cycles,
                    uint64_t seed) {
  const Chain chain(shape, rates);
  kv::Random random(seed);
  const LossCycle loss{chain, random};
  OutageCycle outage(shape, rates, random);
  Mean loss_hours, losses, outage_hours, unreadable_hours;
  for (uint64_t cycle = 0; cycle < cycles; ++cycle) {
    loss_hours.Add(loss.Hours());
    losses.Add(loss.Losses());
    outage_hours.Add(outage.Hours());
    unreadable_hours.Add(outage.UnreadableHours());
  }
  MonteCarlo result{.cycles = cycles};
  result.unavailable_share = unreadable_hours.value() / outage_hours.value();
  result.unavailable_error = std::hypot(unreadable_hours.Error(), outage_hours.Error());
  if (losses.value() <= 0) return result;
  result.years_to_loss = loss_hours.value() / losses.value() / kHoursPerYear;
  result.relative_error = losses.Error();
  return result;
}

}  // namespace cairn::tools
