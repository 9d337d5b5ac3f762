// How long a load of so many bytes would take now, from the reads of the last moments. Pure.
//
// The model: a fixed time, then what is queued and what is asked for at the rate at which bytes
// come. Every finished read teaches both: how many bytes all reads together finished while it was
// on its way is the rate, so that a saturated device is seen as what it is, whatever the size of
// the single reads. What the model is off by is learned too, apart for small and large loads and
// for an idle and a busy device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kvstore/base/time.h"

namespace cairn::kv {

// Not thread-safe.
class LoadEstimator {
 public:
  // Bracket each load: Begin when its reads are issued, End when the last has come.
  struct Ticket {
    Instant began;
    uint64_t bytes = 0;            // Asked for.
    uint64_t finished_before = 0;  // Of all loads, in bytes.
    size_t kind = 0;
    double estimate = 0.0;         // In nanoseconds, by the model alone.
  };
  Ticket Begin(uint64_t bytes, Instant now);
  // `got` is 0 for a load that failed: then it teaches nothing.
  void End(const Ticket& ticket, uint64_t got, Instant now);

  // To load `bytes` more, all asked for at once, behind what is in flight. 0 for none.
  Nanos Estimate(uint64_t bytes) const;

  uint64_t bytes_in_flight() const { return in_flight_; }

 private:
  static constexpr size_t kKinds = 8;

  double Model(uint64_t bytes) const;
  size_t KindOf(uint64_t bytes) const;

  uint64_t in_flight_ = 0;
  uint64_t finished_ = 0;
  double nanos_per_byte_ = 1.0;
  double latency_nanos_ = 200e3;
  std::array<double, kKinds> error_{};  // Logarithms of truth by model; moving averages.
};

}  // namespace cairn::kv
