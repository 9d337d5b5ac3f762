// Histograms that forget by halving; thresholds are computed anew every few operations.
#include "kvstore/client/pace.h"

#include <algorithm>
#include <bit>

#include "kvstore/io/network.h"

namespace cairn::kv {
namespace {

constexpr uint32_t kSamplesMax = 256;  // Then all counts are halved.
constexpr uint32_t kLearnEvery = 32;
constexpr int kSlowLates = 8;     // Of the last 32.
constexpr size_t kSlowShare = 6;  // As many targets as two of twelve are few.
constexpr Nanos kRecent = Seconds(60);

}  // namespace

template <typename Id>
void PaceOf<Id>::Histogram::Add(size_t bucket) {
  ++counts[bucket];
  if (++total < kSamplesMax) return;
  total = 0;
  for (uint16_t& count : counts) {
    count = static_cast<uint16_t>(count / 2);
    total += count;
  }
}

template <typename Id>
Nanos PaceOf<Id>::Histogram::Percentile(uint32_t percent) const {
  const uint32_t wanted = std::max<uint32_t>(1, (total * percent + 99) / 100);
  uint32_t below = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    below += counts[i];
    if (below >= wanted) return UpperEnd(i);
  }
  return kUnknown;
}

template <typename Id>
size_t PaceOf<Id>::ClassOf(uint64_t bytes) {
  size_t size_class = 0;
  for (uint64_t limit = 16 * 1024; bytes > limit && size_class + 1 < kClasses; limit *= 4) {
    ++size_class;
  }
  return size_class;
}

template <typename Id>
size_t PaceOf<Id>::BucketOf(Nanos took) {
  const auto micros = static_cast<uint64_t>(std::max<int64_t>(1, took.value / 1000));
  const auto width = static_cast<size_t>(std::bit_width(micros));
  const size_t upper_half = width > 1 ? (micros >> (width - 2)) & 1 : 0;
  return std::min(kBuckets - 1, 2 * width + upper_half);
}

template <typename Id>
Nanos PaceOf<Id>::UpperEnd(size_t bucket) {
  const size_t width = std::max<size_t>(1, bucket / 2);
  const int64_t low = int64_t{1} << (width - 1);
  return Micros(bucket % 2 == 0 ? low + (low + 1) / 2 : 2 * low);
}

template <typename Id>
bool PaceOf<Id>::Target::is_slow() const { return std::popcount(lates) >= kSlowLates; }

template <typename Id>
void PaceOf<Id>::Begin(Id target, Instant now) {
  Target& at = targets_[target];
  if (at.in_flight++ == 0) at.progress_at = now;
}

template <typename Id>
void PaceOf<Id>::End(Id target, uint64_t bytes, Nanos took, Instant now) {
  Target& at = Leave(target, now);
  const size_t size_class = ClassOf(bytes);
  at.lates = (at.lates << 1) | (took > late_after_[size_class] ? 1U : 0U);
  const size_t bucket = BucketOf(took);
  at.took[size_class].Add(bucket);
  all_[size_class].Add(bucket);
  if (++news_[size_class] < kLearnEvery) return;
  Learn(size_class, now);
  CountSlow(now);
}

template <typename Id>
typename PaceOf<Id>::Target& PaceOf<Id>::Leave(Id target, Instant now) {
  Target& at = targets_[target];
  --at.in_flight;
  at.progress_at = now;
  return at;
}

template <typename Id>
template <typename Visit>
void PaceOf<Id>::ForEachRecent(Instant now, Visit visit) const {
  for (const auto& [id, target] : targets_) {
    if (now - target.progress_at <= kRecent) visit(id, target);
  }
}

template <typename Id>
void PaceOf<Id>::CountSlow(Instant now) {
  size_t asked = 0;
  size_t slow = 0;
  ForEachRecent(now, [&](Id, const Target& target) {
    ++asked;
    if (target.is_slow()) ++slow;
  });
  few_are_slow_ = slow <= std::max<size_t>(1, asked / kSlowShare);
}

template <typename Id>
void PaceOf<Id>::Learn(size_t size_class, Instant now) {
  news_[size_class] = 0;
  std::vector<Nanos> ordinary;
  size_t asked = 0;
  ForEachRecent(now, [&](Id, const Target& target) {
    ++asked;
    const Histogram& took = target.took[size_class];
    if (took.total < options_.samples_min) return;
    ordinary.push_back(took.Percentile(options_.late_percent));
  });
  Nanos late{3 * all_[size_class].Percentile(75).value};
  if (2 * ordinary.size() >= asked) {
    const auto middle = ordinary.begin() + static_cast<std::ptrdiff_t>((ordinary.size() - 1) / 2);
    std::nth_element(ordinary.begin(), middle, ordinary.end());
    late = *middle;
  } else if (all_[size_class].total < options_.samples_min) {
    return;
  }
  late_after_[size_class] = std::max(options_.late_min, late);
}

template <typename Id>
Nanos PaceOf<Id>::LateAfter(uint64_t bytes) const { return late_after_[ClassOf(bytes)]; }

template <typename Id>
bool PaceOf<Id>::IsSlow(Id target) const {
  const auto found = targets_.find(target);
  return found != targets_.end() && found->second.is_slow();
}

template <typename Id>
bool PaceOf<Id>::IsTardy(Id target, uint64_t bytes, Instant now) const {
  const auto found = targets_.find(target);
  if (found == targets_.end()) return false;
  const Target& at = found->second;
  if (at.is_slow()) return true;
  const Nanos late = LateAfter(bytes);
  return late != kUnknown && at.in_flight > 0 && now - at.progress_at > late;
}

template <typename Id>
std::optional<PaceSeen<Id>> PaceOf<Id>::Seen(Instant now) const {
  const bool knows = std::any_of(late_after_.begin(), late_after_.end(),
                                 [](Nanos late) { return late != kUnknown; });
  PaceSeen<Id> seen;
  ForEachRecent(now, [&](Id id, const Target& target) {
    ++seen.asked;
    if (target.is_slow()) seen.slow.push_back(id);
  });
  if (!knows || seen.asked == 0) return std::nullopt;
  return seen;
}

template class PaceOf<TargetId>;
template class PaceOf<NodeId>;

void HedgeBudget::Earn(uint64_t bytes) {
  hundredths_ = std::min(hundredths_ + bytes * percent_, kSavedMax * 100);
}

bool HedgeBudget::Spend(uint64_t bytes) {
  if (!Has(bytes)) return false;
  hundredths_ -= bytes * 100;
  return true;
}

}  // namespace cairn::kv
