// A node that is all there is: its targets are all targets, and it is the home of every run.
#pragma once

#include <optional>

#include "kvstore/client/local_placement.h"
#include "kvstore/node/surroundings.h"

namespace cairn::kv {

class SoleSurroundings final : public Surroundings {
 public:
  // Both must outlive it.
  SoleSurroundings(Clock& clock, Log& log) : clock_(clock), log_(log) {}

  Task<Status> Join(const LocalTargets& own) override;
  TargetSet& targets() override { return *set_; }
  Placement& placement() override { return *placement_; }
  const HomeTenure& tenure() override { return tenure_; }
  SpaceStore& space_store() override { return *space_store_; }
  StripeIndex& IndexOver(Home& home) override { return home.index(); }
  void Begin(Served) override {}
  bool sole() const override { return true; }
  Task<Status> RepairIndex(uint64_t& filed) override {
    return cairn::kv::RepairIndex(*own_, filed);
  }
  Task<void> Leave() override { co_return; }
  Task<void> Close() override { co_return; }

 private:
  Clock& clock_;
  Log& log_;
  const LocalTargets* own_ = nullptr;
  std::optional<TargetSet> set_;
  std::optional<LocalPlacement> placement_;
  SoleHome tenure_;
  std::optional<TargetSpaceStore> space_store_;
};

}  // namespace cairn::kv
