// Reads every shard of every stripe, verifies its record, and restores what is damaged or missing.
#pragma once

#include "kvstore/node/maintenance_pass.h"

namespace cairn::kv {

// Goes by stripes, so that a damaged shard is restored while the others are at hand. What no index
// knows is garbage and is not read.
class Scrubber final : public MaintenancePass {
 public:
  explicit Scrubber(Parts parts) : MaintenancePass(parts, "scrub") {}

 private:
  Task<std::vector<StripeId>> Plan() override;
  bool Wants(const StripeState&) const override { return true; }
  Task<RestoreReport> Visit(FiledStripe stripe) override;
};

}  // namespace cairn::kv
