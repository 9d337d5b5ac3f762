// Searches the held-back text for stop texts, and lets go of what can no longer be part of one.
#include "engine/schedule/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace cairn::engine {

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
}

std::string StopMatcher::Add(std::string_view piece) {
  if (stopped_) return {};
  held_ += piece;
  size_t first = std::string::npos;
  for (const std::string& stop : stops_) first = std::min(first, held_.find(stop));
  if (first != std::string::npos) {
    stopped_ = true;
    held_.resize(first);
    return std::exchange(held_, {});
  }
  const size_t sure = held_.size() - UnsureLength();
  std::string text = held_.substr(0, sure);
  held_.erase(0, sure);
  return text;
}

std::string StopMatcher::Finish() {
  return stopped_ ? std::string() : std::exchange(held_, {});
}

size_t StopMatcher::UnsureLength() const {
  const std::string_view held = held_;
  size_t unsure = 0;
  for (const std::string& stop : stops_) {
    for (size_t length = std::min(stop.size() - 1, held.size()); length > unsure; --length) {
      if (held.ends_with(std::string_view(stop).substr(0, length))) unsure = length;
    }
  }
  return unsure;
}

}  // namespace cairn::engine
