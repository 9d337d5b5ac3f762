// Gives stripes back the shards that they lost with a target: the hottest first.
#pragma once

#include <functional>
#include <utility>

#include "kvstore/node/maintenance_pass.h"

namespace cairn::kv {

struct RepairOptions {
  bool automatic = true;  // Passes begin by themselves: after opening, then at every interval.
  Nanos first_after = Seconds(10);
  Nanos interval = Seconds(3600);
  uint64_t bytes_per_second = 256 * kMiB;  // Of automatic passes. Read and written; 0: no limit.
  Nanos skip_expiring_within = Seconds(600);
};

// What is left to do is seen from the index and the targets' tables, so a pass that was cut off by
// a restart goes on with the next one.
class Repairer final : public MaintenancePass {
 public:
  // Files stripes where they should be filed and are not, and counts them.
  using RepairIndex = std::function<Task<Status>(uint64_t& filed)>;
  Repairer(Parts parts, RepairOptions options, RepairIndex repair_index)
      : MaintenancePass(parts, "repair"),
        options_(options),
        repair_index_(std::move(repair_index)) {}

 private:
  // Files the index anew first, where a replica was lost: what no replica lists is lost.
  Task<std::vector<StripeId>> Plan() override;
  bool Wants(const StripeState& state) const override;
  Task<RestoreReport> Visit(FiledStripe stripe) override;

  const RepairOptions options_;
  const RepairIndex repair_index_;
};

}  // namespace cairn::kv
