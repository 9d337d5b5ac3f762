// Text that remembers, byte for byte, whether it came from the template or from a user.
#include "engine/tokens/jinja_text.h"

#include <algorithm>

namespace cairn::engine::jinja {

void Text::Append(std::string_view bytes, Trust trust) {
  if (bytes.empty()) return;
  bytes_ += bytes;
  if (!runs_.empty() && runs_.back().trust == trust) {
    runs_.back().end = bytes_.size();
  } else {
    runs_.push_back({bytes_.size(), trust});
  }
}

void Text::Append(const Text& other) {
  size_t begin = 0;
  for (const Run& run : other.runs_) {
    Append(std::string_view(other.bytes_).substr(begin, run.end - begin), run.trust);
    begin = run.end;
  }
}

Text Text::Slice(size_t begin, size_t end) const {
  Text result;
  const auto after = [](size_t at, const Run& run) { return at < run.end; };
  auto run = std::upper_bound(runs_.begin(), runs_.end(), begin, after);
  while (begin < end) {
    const size_t stop = std::min(end, run->end);
    result.Append(std::string_view(bytes_).substr(begin, stop - begin), run->trust);
    begin = stop;
    ++run;
  }
  return result;
}

}  // namespace cairn::engine::jinja
