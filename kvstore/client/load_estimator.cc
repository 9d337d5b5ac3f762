// Nearest neighbours in logarithms: twice as much is as far as half as much.
#include "kvstore/client/load_estimator.h"

#include <algorithm>
#include <cmath>

#include "kvstore/base/units.h"

namespace cairn::kv {
namespace {

// The guess that loads are scaled by.
constexpr double kFixedNanos = 300e3;
constexpr double kNanosPerColdByte = 1.0;
constexpr double kNanosPerHotByte = 0.15;
constexpr double kBytesMin = 64.0 * 1024;  // Less makes no difference.
// A load of kRemembered loads ago is as far off as one of e times as many bytes.
constexpr double kAgeWeight = 1.0;

struct Like {
  double distance = 0;
  double off = 0;
};

}  // namespace

void LoadEstimator::Add(Ticket& ticket, uint64_t size, bool in_memory) {
  ticket.size.Add(size, in_memory);
  if (!in_memory) in_flight_ += size;
}

void LoadEstimator::End(const Ticket& ticket, uint64_t got, Instant now) {
  in_flight_ -= ticket.size.cold;
  if (got == 0) return;
  const Stand stand = StandOf(ticket.size, ticket.queued);
  const double took = std::log(std::max(1.0, static_cast<double>((now - ticket.began).value)));
  seen_[count_ % kRemembered] = {stand, took - stand.all};
  ++count_;
}

Nanos LoadEstimator::Estimate(LoadSize size) const {
  if (size.cold + size.hot == 0) return {};
  const Stand stand = StandOf(size, in_flight_);
  std::array<Like, kRemembered> likes;
  const size_t count = std::min<uint64_t>(count_, kRemembered);
  for (size_t i = 0; i < count; ++i) {
    const Seen& seen = seen_[(count_ - 1 - i) % kRemembered];
    const double age = static_cast<double>(i) / kRemembered;
    likes[i] = {std::abs(seen.stand.cold - stand.cold) + std::abs(seen.stand.ahead - stand.ahead) +
                    kAgeWeight * age,
                seen.off};
  }
  const size_t asked = std::min(kAsked, count);
  const auto first = likes.begin();
  const auto last = first + static_cast<ptrdiff_t>(asked);
  const auto middle = first + static_cast<ptrdiff_t>(asked / 2);
  std::nth_element(first, last, first + static_cast<ptrdiff_t>(count),
                   [](const Like& a, const Like& b) { return a.distance < b.distance; });
  std::nth_element(first, middle, last,
                   [](const Like& a, const Like& b) { return a.off < b.off; });
  const double off = asked == 0 ? 0.0 : middle->off;
  return {std::max<int64_t>(1, static_cast<int64_t>(std::exp(stand.all + off)))};
}

LoadEstimator::Stand LoadEstimator::StandOf(LoadSize size, uint64_t queued) {
  const auto cold = static_cast<double>(size.cold);
  const double ahead = cold + static_cast<double>(queued);
  const double guess = kFixedNanos + kNanosPerColdByte * ahead +
                       kNanosPerHotByte * static_cast<double>(size.hot);
  return {std::log(kBytesMin + cold), std::log(kBytesMin + ahead), std::log(guess)};
}

}  // namespace cairn::kv
