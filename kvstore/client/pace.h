// How long reads, or writes, take lately, target by target: when one is late, and which will
// probably be.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "kvstore/base/time.h"
#include "kvstore/types/ids.h"

namespace cairn::kv {

struct PaceOptions {
  Nanos late_min = Millis(2);  // Nothing is late sooner.
  uint32_t late_percent = 95;  // Of the operations of an ordinary target are not late.
  uint32_t samples_min = 32;   // Of a size, before anything is said of it.
};

// Of those that were asked something lately.
template <typename Id>
struct PaceSeen {
  uint32_t asked = 0;
  std::vector<Id> slow = {};  // Of these.
  bool operator==(const PaceSeen&) const = default;
};

// Of operations of one kind. Pure. Sizes are taken together by factors of four. An Id is that of
// whoever is asked: a target, or a node.
template <typename Id>
class PaceOf {
 public:
  explicit PaceOf(PaceOptions options) : options_(options) {}

  // Around each operation of a target.
  void Begin(Id target, Instant now);
  void End(Id target, uint64_t bytes, Nanos took, Instant now);
  // Instead of End, when it failed: how fast it did so says nothing.
  void Fail(Id target, Instant now) { Leave(target, now); }

  // After which time an operation of so many bytes is late: the given percentile of the median
  // target, so that a few slow targets do not make slowness ordinary. As long as few targets are
  // known so well: three times what three quarters of all took. kUnknown: too few so far.
  static constexpr Nanos kUnknown{INT64_MAX};
  Nanos LateAfter(uint64_t bytes) const;

  // A quarter of its last operations were late.
  bool IsSlow(Id target) const;
  // Whether one that starts now will probably be late: the target is slow, or none has ended for
  // that long while some wait.
  bool IsTardy(Id target, uint64_t bytes, Instant now) const;
  // The slow targets are so few that to do without them costs no more than if they were lost.
  bool FewAreSlow() const { return few_are_slow_; }
  // Nothing as long as nothing is known.
  std::optional<PaceSeen<Id>> Seen(Instant now) const;

 private:
  static constexpr size_t kClasses = 6;
  static constexpr size_t kBuckets = 64;  // Two to a doubling of the microseconds.

  struct Histogram {
    std::array<uint16_t, kBuckets> counts{};
    uint32_t total = 0;
    void Add(size_t bucket);
    // The upper end of the bucket below which `percent` of the samples lie.
    Nanos Percentile(uint32_t percent) const;
  };
  struct Target {
    std::array<Histogram, kClasses> took;
    uint32_t lates = 0;  // A bit for each of the last: it was late.
    uint32_t in_flight = 0;
    Instant progress_at;  // The last end, or the begin of the first in flight.
    bool is_slow() const;
  };

  // Those that were asked something lately: others may be gone.
  template <typename Visit>
  void ForEachRecent(Instant now, Visit visit) const;
  // One of its operations is over.
  Target& Leave(Id target, Instant now);
  static size_t ClassOf(uint64_t bytes);
  static size_t BucketOf(Nanos took);
  static Nanos UpperEnd(size_t bucket);
  void Learn(size_t size_class, Instant now);
  void CountSlow(Instant now);

  const PaceOptions options_;
  std::map<Id, Target> targets_;
  bool few_are_slow_ = true;
  std::array<Histogram, kClasses> all_;
  std::array<Nanos, kClasses> late_after_{kUnknown, kUnknown, kUnknown,
                                          kUnknown, kUnknown, kUnknown};
  std::array<uint32_t, kClasses> news_{};  // Since late_after_ was computed.
};

using Pace = PaceOf<TargetId>;

// What may be read in addition, as a part of what was asked for. In bytes, since one hedge of a
// small block reads as many shards as the stripe is wide.
class HedgeBudget {
 public:
  explicit HedgeBudget(uint32_t percent) : percent_(percent) {}
  void Earn(uint64_t bytes);
  // There is so much.
  bool Has(uint64_t bytes) const { return bytes * 100 <= hundredths_; }
  // False, and nothing is spent, when there is not so much.
  bool Spend(uint64_t bytes);

 private:
  static constexpr uint64_t kSavedMax = 32 * 1024 * 1024;
  const uint32_t percent_;
  uint64_t hundredths_ = 0;  // Of bytes.
};

}  // namespace cairn::kv
