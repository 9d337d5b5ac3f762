// Workers without threads: a call runs on the loop, and takes virtual time.
#pragma once

#include <functional>

#include "kvstore/base/random.h"
#include "kvstore/io/workers.h"
#include "tests/sim/sim_clock.h"

namespace cairn::sim {

class SimWorkers final : public kv::Workers {
 public:
  // Each call takes between `cost_min` and `cost_max`. `clock` must outlive this.
  SimWorkers(SimClock& clock, uint64_t seed, kv::Nanos cost_min, kv::Nanos cost_max);
  SimWorkers(SimClock& clock, uint64_t seed)
      : SimWorkers(clock, seed, kv::Micros(5), kv::Micros(50)) {}

  kv::Task<void> Run(std::function<void()> call) override;

 private:
  SimClock& clock_;
  kv::Random random_;
  const kv::Nanos cost_min_;
  const kv::Nanos cost_max_;
};

}  // namespace cairn::sim
