// How long stripes last and how often they can be read, for any k + m and for copies.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kvstore/base/result.h"

namespace cairn::tools {

struct CodeShape {
  uint32_t data_shards = 10;
  uint32_t parity_shards = 2;

  uint32_t shards() const { return data_shards + parity_shards; }
  double overhead() const { return static_cast<double>(shards()) / data_shards; }
};
// "10+2", or "3x" for three copies. kInvalid says what is understood.
kv::Result<CodeShape> ParseCode(const std::string& text);
std::string CodeName(const CodeShape& shape);

struct FailureRates {
  double failures_per_year = 0.01;  // Of what holds one shard, for good.
  double rebuild_hours = 1;         // Mean time until a lost shard is whole again.
  double outages_per_year = 0.05;   // Of what holds one shard, with its data intact.
  double outage_hours = 1;
  double stripe_sets = 1'000;  // Independent groups of shard holders: losses add up over them.
};

// The share of time in which more than m shards are out is what reads see; a loss is for ever.
struct Reliability {
  double years_to_loss = 0;      // Mean, of one stripe set.
  double loss_per_year = 0;      // Chance that any of the stripe sets loses data within a year.
  double nines = 0;              // -log10 of the yearly chance that one given block is lost.
  double unavailable_share = 0;  // Of time, for one block.
};

// Closed form. Each healthy shard fails, and each lost one is rebuilt, independently of others: a
// Markov chain over the number of lost shards, absorbed at m + 1.
Reliability Solve(const CodeShape& shape, const FailureRates& rates);

struct MonteCarlo {
  double years_to_loss = 0;
  double relative_error = 0;  // One standard deviation of it, as a share.
  double unavailable_share = 0;
  double unavailable_error = 0;  // The same.
  uint64_t cycles = 0;
};
// The same model played out. What is wanted is far too rare to wait for: failures and outages are
// made likely while a stripe is degraded, and every history is weighed by how much likelier it was
// made.
MonteCarlo Simulate(const CodeShape& shape, const FailureRates& rates, uint64_t cycles,
                    uint64_t seed);

}  // namespace cairn::tools
