// Histograms that forget by halving; thresholds are computed anew every few reads.
#include "kvstore/client/read_pace.h"

#include <algorithm>
#include <bit>

namespace cairn::kv {
namespace {

constexpr uint32_t kSamplesMax = 256;  // Then all counts are halved.
constexpr uint32_t kLearnEvery = 32;

}  // namespace

void ReadPace::Histogram::Add(size_t bucket) {
  ++counts[bucket];
  if (++total < kSamplesMax) return;
  total = 0;
  for (uint16_t& count : counts) {
    count = static_cast<uint16_t>(count / 2);
    total += count;
  }
}

Nanos ReadPace::Histogram::Percentile(uint32_t percent) const {
  const uint32_t wanted = std::max<uint32_t>(1, (total * percent + 99) / 100);
  uint32_t below = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    below += counts[i];
    if (below >= wanted) return UpperEnd(i);
  }
  return kUnknown;
}

size_t ReadPace::ClassOf(uint64_t bytes) {
  size_t size_class = 0;
  for (uint64_t limit = 16 * 1024; bytes > limit && size_class + 1 < kClasses; limit *= 4) {
    ++size_class;
  }
  return size_class;
}

size_t ReadPace::BucketOf(Nanos took) {
  const auto micros = static_cast<uint64_t>(std::max<int64_t>(1, took.value / 1000));
  const auto width = static_cast<size_t>(std::bit_width(micros));
  const size_t upper_half = width > 1 ? (micros >> (width - 2)) & 1 : 0;
  return std::min(kBuckets - 1, 2 * width + upper_half);
}

Nanos ReadPace::UpperEnd(size_t bucket) {
  const size_t width = std::max<size_t>(1, bucket / 2);
  const int64_t low = int64_t{1} << (width - 1);
  return Micros(bucket % 2 == 0 ? low + (low + 1) / 2 : 2 * low);
}

void ReadPace::Begin(TargetId target, Instant now) {
  Target& at = targets_[target];
  if (at.in_flight++ == 0) at.progress_at = now;
}

void ReadPace::End(TargetId target, uint64_t bytes, Nanos took, Instant now) {
  Target& at = targets_[target];
  --at.in_flight;
  at.progress_at = now;
  const size_t size_class = ClassOf(bytes);
  at.reads[size_class].Add(BucketOf(took));
  if (++news_[size_class] >= kLearnEvery) Learn(size_class);
}

void ReadPace::Learn(size_t size_class) {
  news_[size_class] = 0;
  std::vector<Nanos> ordinary;
  for (const auto& [id, target] : targets_) {
    const Histogram& reads = target.reads[size_class];
    if (reads.total < options_.samples_min) continue;
    ordinary.push_back(reads.Percentile(options_.late_percent));
  }
  if (ordinary.empty()) return;
  const auto middle = ordinary.begin() + static_cast<std::ptrdiff_t>((ordinary.size() - 1) / 2);
  std::nth_element(ordinary.begin(), middle, ordinary.end());
  late_after_[size_class] = std::max(options_.late_min, *middle);
}

Nanos ReadPace::LateAfter(uint64_t bytes) const { return late_after_[ClassOf(bytes)]; }

bool ReadPace::IsTardy(TargetId target, uint64_t bytes, Instant now) const {
  const Nanos late = LateAfter(bytes);
  const auto found = targets_.find(target);
  if (late == kUnknown || found == targets_.end()) return false;
  const Target& at = found->second;
  if (at.in_flight > 0 && now - at.progress_at > late) return true;
  const Histogram& reads = at.reads[ClassOf(bytes)];
  return reads.total >= options_.samples_min && reads.Percentile(75) > late;
}

void HedgeBudget::Earn(uint64_t bytes) {
  hundredths_ = std::min(hundredths_ + bytes * percent_, kSavedMax * 100);
}

bool HedgeBudget::Spend(uint64_t bytes) {
  if (bytes * 100 > hundredths_) return false;
  hundredths_ -= bytes * 100;
  return true;
}

}  // namespace cairn::kv
