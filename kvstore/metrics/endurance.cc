// Keeps one sample an hour, and compares the last note with the oldest of them.
#include "kvstore/metrics/endurance.h"

namespace cairn::kv {
namespace {

constexpr Nanos kHour = Seconds(3600);
constexpr Nanos kDay = Seconds(86'400);
constexpr Nanos kShortest = Seconds(10);

}  // namespace

void EnduranceMeter::Note(Instant now, uint64_t bytes_appended) {
  last_ = {now, bytes_appended};
  if (hourly_.empty() || now - hourly_.back().at >= kHour) hourly_.push_back(last_);
  // The oldest may be older than a day only while the next one is younger than that.
  while (hourly_.size() > 1 && now - hourly_[1].at >= kDay) hourly_.pop_front();
}

double EnduranceMeter::BytesPerDay() const {
  if (hourly_.empty()) return 0;
  const Sample& oldest = hourly_.front();
  const Nanos span = last_.at - oldest.at;
  if (span < kShortest) return 0;
  const auto bytes = static_cast<double>(last_.bytes - oldest.bytes);
  return bytes * static_cast<double>(kDay.value) / static_cast<double>(span.value);
}

}  // namespace cairn::kv
