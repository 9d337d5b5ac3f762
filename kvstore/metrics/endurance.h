// How fast the SSDs are being worn: bytes written a day, over the last day.
#pragma once

#include <cstdint>
#include <deque>

#include "kvstore/base/time.h"

namespace cairn::kv {

// Not thread-safe.
class EnduranceMeter {
 public:
  // `bytes_appended` as of `now`: a counter that rises. Call it now and then, at least hourly.
  void Note(Instant now, uint64_t bytes_appended);

  // Over the last 24 hours, or since the first note when that is less; 0 before ten seconds have
  // passed: a rate of less would mean nothing.
  double BytesPerDay() const;

 private:
  struct Sample {
    Instant at;
    uint64_t bytes = 0;
  };
  std::deque<Sample> hourly_;  // Oldest first; at most one an hour.
  Sample last_;
};

}  // namespace cairn::kv
