// Text that remembers, byte for byte, whether it came from the template or from a user.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::engine::jinja {

enum class Trust : bool { kUntrusted, kTrusted };

class Text {
 public:
  Text() = default;
  Text(std::string_view bytes, Trust trust) { Append(bytes, trust); }

  void Append(std::string_view bytes, Trust trust);
  void Append(const Text& other);

  // Bytes [begin, end) with their trust; both are at most size().
  Text Slice(size_t begin, size_t end) const;
  // The same trust for other bytes in place of each stretch: `map` must keep no state between
  // stretches. Used for upper and lower case.
  template <typename Map>
  Text MapStretches(Map map) const {
    Text result;
    size_t begin = 0;
    for (const Run& run : runs_) {
      result.Append(map(std::string_view(bytes_).substr(begin, run.end - begin)), run.trust);
      begin = run.end;
    }
    return result;
  }

  const std::string& bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }

  // Stretches of equal trust, in order; neighbours differ. Each ends where the next begins.
  struct Run {
    size_t end;
    Trust trust;
  };
  const std::vector<Run>& runs() const { return runs_; }

 private:
  std::string bytes_;
  std::vector<Run> runs_;
};

}  // namespace cairn::engine::jinja
