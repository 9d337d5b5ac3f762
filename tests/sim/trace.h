// The running hash of a simulation: two runs that did the same have the same hash.
#pragma once

#include <cstdint>

#include "kvstore/base/time.h"

namespace cairn::sim {

enum class TraceKind : uint64_t {
  kRead = 1,
  kWrite,
  kSync,
  kCrash,
  kRestart,
  kDamage,
  kSend,
  kDrop,
  kDeliver,
  kAnswer,
  kPartition,
  kWork,
  kFault,
  kNote,  // For the test itself.
};

class Trace {
 public:
  // `id` is who; `first` and `second` are what (an offset, a peer, a checksum of bytes).
  void Add(kv::Instant at, TraceKind kind, uint64_t id, uint64_t first, uint64_t second) {
    Mix(static_cast<uint64_t>(at.nanos));
    Mix(static_cast<uint64_t>(kind));
    Mix(id);
    Mix(first);
    Mix(second);
    ++count_;
  }
  uint64_t hash() const { return hash_; }
  uint64_t count() const { return count_; }

 private:
  void Mix(uint64_t value) {  // The finaliser of splitmix64, chained.
    uint64_t z = hash_ * 0x9e3779b97f4a7c15u + value;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    hash_ = z ^ (z >> 31);
  }

  uint64_t hash_ = 0;
  uint64_t count_ = 0;
};

}  // namespace cairn::sim
