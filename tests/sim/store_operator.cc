// What it does is told to the checker, which judges what others see of it.
#include "tests/sim/store_operator.h"

#include <string>

#include "kvstore/node/node_admin.h"

namespace cairn::sim {
namespace {

constexpr int64_t kStepMillisMax = 30'000;
// What was deleted is gone from the targets by then: orphans are left alone for a minute.
constexpr kv::Nanos kReturnsWithin = kv::Seconds(180);

}  // namespace

kv::Task<void> StoreOperator::Operate(uint64_t seed) {
  kv::Random random(seed);
  while (!workload_.Over()) {
    const auto pause = static_cast<int64_t>(500 + random.Below(6'000));
    const kv::Instant wake_at = world_.clock().Now() + kv::Millis(pause);
    while (!workload_.Over() && world_.clock().Now() < wake_at) {
      co_await world_.clock().SleepUntil(world_.clock().Now() + kv::Millis(100), nullptr);
    }
    if (workload_.Over()) co_return;
    const uint64_t what = random.Below(4);
    const uint64_t draw = random.Next();
    kv::Node& node = world_.node();
    if (what == 0 && scenario_.scrubs) (void)node.scrubber().Start(draw % 2 == 0 ? 0 : kv::kMiB);
    if (what == 1 && scenario_.scrubs) (void)node.repairer().Start(0);
    if (what == 2 && scenario_.drops) {
      co_await DropSpace(static_cast<uint32_t>(draw % scenario_.spaces.size()));
    }
    if (what == 3 && scenario_.clock_steps) StepClock(draw);
  }
}

kv::Task<void> StoreOperator::DropSpace(uint32_t space) {
  const std::string& name = scenario_.spaces[space].name;
  const StoreChecker::Access access =
      checker_.BeginDelete(checker_.KeysOf(space), workload_.Now());
  workload_.NoteDrop(space);
  kv::NodeAdmin admin(world_.node());
  const kv::Status outcome = co_await admin.DeleteSpace(name);
  workload_.NoteDrop(space);
  // Beyond the budget all who know of it may be lost.
  const bool beyond = scenario_.mode == StoreMode::kBeyond;
  checker_.EndDrop(access, outcome.ok() && !beyond && !world_.crashed(), workload_.Now());
  world_.log().Info("namespace " + name + " deleted: " + outcome.ToString());
  ++stats_.drops;
}

void StoreOperator::StepClock(uint64_t seed) {
  kv::Random random(seed);
  const auto span = static_cast<int64_t>(1 + random.Below(kStepMillisMax));
  const int64_t by = random.Chance(1, 2) ? span : -span;
  const int64_t before = world_.clock().UnixNow().value;
  world_.clock().SetUnix({before + by});
  checker_.Stepped(by, before);
  world_.log().Info("the calendar is set by " + std::to_string(by) + " ms");
  ++stats_.steps;
}

kv::Task<void> StoreOperator::AwaitScrub() {
  kv::Scrubber& scrubber = world_.node().scrubber();
  (void)scrubber.Start(0);
  while (scrubber.status().running) {
    co_await world_.clock().SleepUntil(world_.clock().Now() + kv::Millis(100), nullptr);
  }
}

kv::Task<void> StoreOperator::ScrubAll() {
  co_await AwaitScrub();
  co_await AwaitScrub();
  const kv::MaintenanceStatus status = world_.node().scrubber().status();
  if (status.shards_damaged > 0) {
    workload_.Fail(std::to_string(status.shards_damaged) + " shards are damaged after a scrub");
  }
}

kv::Task<void> StoreOperator::DeleteAll() {
  if (scenario_.drops) {
    for (uint32_t i = 0; i < scenario_.spaces.size(); ++i) co_await DropSpace(i);
  } else {
    co_await workload_.DeleteAll();
  }
  const kv::Instant limit = world_.clock().Now() + kReturnsWithin;
  while (world_.node().stats().live_bytes > 0 && world_.clock().Now() < limit) {
    co_await world_.clock().SleepUntil(world_.clock().Now() + kv::Millis(500), nullptr);
  }
  const uint64_t left = world_.node().stats().live_bytes;
  if (left > 0) workload_.Fail(std::to_string(left) + " bytes are left of what was deleted");
}

}  // namespace cairn::sim
