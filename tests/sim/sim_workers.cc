// Runs each call when its virtual time has passed.
#include "tests/sim/sim_workers.h"

#include "kvstore/base/check.h"

namespace cairn::sim {

SimWorkers::SimWorkers(SimClock& clock, uint64_t seed, kv::Nanos cost_min, kv::Nanos cost_max)
    : clock_(clock), random_(seed), cost_min_(cost_min), cost_max_(cost_max) {
  KV_CHECK(cost_min <= cost_max);
}

kv::Task<void> SimWorkers::Run(std::function<void()> call) {
  const auto spread = static_cast<uint64_t>((cost_max_ - cost_min_).value);
  const kv::Nanos cost{cost_min_.value + static_cast<int64_t>(random_.Below(spread + 1))};
  co_await clock_.SleepUntil(clock_.Now() + cost, nullptr);
  call();
  clock_.Note(TraceKind::kWork, 0, 0, 0);
}

}  // namespace cairn::sim
