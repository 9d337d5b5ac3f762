// Fault plans stay within their budget and follow from their seed alone.
#include "tests/sim/fault_plan.h"

#include <gtest/gtest.h>

namespace cairn::sim {
namespace {

TEST(FaultPlan, NeverHasMoreFaultyTargetsThanItsBudget) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    kv::Loop loop;
    SimClock clock(loop);
    FaultPlan plan(clock, {.seed = seed, .targets = 12, .faulty_targets_max = 2, .kinds = {}});
    for (int i = 0; i < 50; ++i) {
      const std::optional<Fault> fault = plan.Next();
      ASSERT_LE(plan.faulty().size(), 2u) << "seed " << seed;
      if (!fault.has_value()) continue;
      EXPECT_TRUE(plan.enabled(fault->kind));
      if (i % 3 == 0) plan.Repaired(fault->target);
    }
  }
}

TEST(FaultPlan, SwarmsSomeKindsOffInEachRunAndNoneInAll) {
  kv::Loop loop;
  SimClock clock(loop);
  for (uint32_t kind = 0; kind < kFaultKindCount; ++kind) {
    int on = 0;
    for (uint64_t seed = 0; seed < 100; ++seed) {
      const FaultPlan plan(clock,
                           {.seed = seed, .targets = 3, .faulty_targets_max = 1, .kinds = {}});
      if (plan.enabled(static_cast<FaultKind>(kind))) ++on;
    }
    EXPECT_GT(on, 20) << kind;
    EXPECT_LT(on, 80) << kind;
  }
}

TEST(FaultPlan, AsksTheBudgetThatTheTestGives) {
  kv::Loop loop;
  SimClock clock(loop);
  FaultPlan plan(clock, {.seed = 1, .targets = 8, .faulty_targets_max = 0,
                         .kinds = {FaultKind::kBitFlips}});
  EXPECT_FALSE(plan.Next().has_value());
  plan.SetBudget([](uint32_t target, const std::set<uint32_t>&) { return target == 5; });
  const std::optional<Fault> fault = plan.Next();
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->target, 5u);
  EXPECT_EQ(fault->kind, FaultKind::kBitFlips);
}

TEST(FaultPlan, EveryKindConcernsADiskOrThePartition) {
  for (uint32_t i = 0; i < kFaultKindCount; ++i) {
    kv::Loop loop;
    SimClock clock(loop);
    SimDisk disk(loop, clock, {.size = kv::kMiB});
    const auto kind = static_cast<FaultKind>(i);
    EXPECT_EQ(ApplyToDisk(kind, disk), kind != FaultKind::kPartition);
    HealDisk(disk);
    EXPECT_FALSE(disk.down());
  }
}

}  // namespace
}  // namespace cairn::sim
