// How long a load would take now: what loads like it took lately. Pure.
//
// Each finished load is remembered with how it stood: bytes from the targets, bytes from memory,
// and bytes that others had in flight. An estimate takes the latest of those most like the load in
// question, each scaled to its bytes, and of these the median. So nothing is assumed of the device:
// neither its rate, nor how it shares it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kvstore/base/time.h"

namespace cairn::kv {

// What is to be loaded.
struct LoadSize {
  uint64_t cold = 0;  // Bytes that come from the targets.
  uint64_t hot = 0;   // Bytes that are in memory already.
  void Add(uint64_t size, bool in_memory) { (in_memory ? hot : cold) += size; }
};

// Not thread-safe.
class LoadEstimator {
 public:
  // Bracket each load: Begin when its reads are issued, Add for each, End when the last has come.
  struct Ticket {
    Instant began;
    uint64_t queued = 0;  // What other loads had in flight then.
    LoadSize size;
  };
  Ticket Begin(Instant now) const { return {.began = now, .queued = in_flight_, .size = {}}; }
  void Add(Ticket& ticket, uint64_t size, bool in_memory);
  // `got` is 0 for a load that failed: then it teaches nothing.
  void End(const Ticket& ticket, uint64_t got, Instant now);

  // To load so much more, all asked for at once, behind what is in flight. 0 for none.
  Nanos Estimate(LoadSize size) const;

  uint64_t bytes_in_flight() const { return in_flight_; }

 private:
  static constexpr size_t kRemembered = 128;
  static constexpr size_t kAsked = 9;  // For the median of the most alike.

  // Logarithms of how a load stands.
  struct Stand {
    double cold = 0;
    double ahead = 0;  // With what comes before it.
    double all = 0;    // A rough guess of its time in nanoseconds.
  };
  struct Seen {
    Stand stand;
    double off = 0;  // Logarithm of its true time by the guess.
  };

  static Stand StandOf(LoadSize size, uint64_t queued);

  uint64_t in_flight_ = 0;
  uint64_t count_ = 0;  // Of loads that have taught.
  std::array<Seen, kRemembered> seen_;  // A ring.
};

}  // namespace cairn::kv
