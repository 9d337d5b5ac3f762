// A direct-mapped table of fingerprints; a bucket that fills with time.
#include "kvstore/client/admission.h"

#include <algorithm>
#include <utility>

#include "kvstore/types/limits.h"

namespace cairn::kv {
namespace {

constexpr double kNanosPerDay = 24.0 * 3600 * 1e9;
constexpr double kNanosSavedMax = 3600.0 * 1e9;
// Room for the largest stripes, however small the budget.
constexpr double kSavedMin = 2.0 * static_cast<double>(kStripePayloadMax);

// Ids may be small numbers, where callers number their blocks.
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

Admission::Admission(AdmissionOptions options, uint64_t capacity_bytes, Instant now)
    : options_(options),
      bytes_per_nano_(options.drive_writes_per_day * static_cast<double>(capacity_bytes) /
                      kNanosPerDay),
      saved_max_(std::max(kSavedMin, bytes_per_nano_ * kNanosSavedMax)),
      saved_(saved_max_),
      saved_at_(now) {
  if (options_.policy == AdmissionPolicy::kSecondSight) seen_.assign(options_.sightings_max, 0);
}

bool Admission::Admit(const NamespaceId& space, BlockId first, uint64_t bytes, Instant now) {
  switch (options_.policy) {
    case AdmissionPolicy::kAll: return true;
    case AdmissionPolicy::kSecondSight: return WasSeen(space, first);
    case AdmissionPolicy::kWriteBudget: return FitsBudget(bytes, now);
  }
  return true;
}

// A sighting is used up by the stripe that it admits, and lost to a later one in the same place.
bool Admission::WasSeen(const NamespaceId& space, BlockId first) {
  const uint64_t hash = Mix(first.low ^ Mix(first.high ^ Mix(space.low ^ Mix(space.high))));
  const uint32_t print = static_cast<uint32_t>(hash >> 32) | 1;
  uint32_t& place = seen_[hash % seen_.size()];
  if (place == print) return std::exchange(place, 0u) != 0;
  place = print;
  return false;
}

bool Admission::FitsBudget(uint64_t bytes, Instant now) {
  const auto passed = static_cast<double>((now - saved_at_).value);
  saved_ = std::min(saved_max_, saved_ + bytes_per_nano_ * std::max(0.0, passed));
  saved_at_ = std::max(saved_at_, now);
  if (saved_ < static_cast<double>(bytes)) return false;
  saved_ -= static_cast<double>(bytes);
  return true;
}

}  // namespace cairn::kv
