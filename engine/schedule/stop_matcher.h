// Finds stop texts in text that arrives in pieces, holding back what may be the start of one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cairn::engine {

class StopMatcher {
 public:
  // Empty texts are ignored.
  explicit StopMatcher(std::vector<std::string> stops);

  // Adds a piece and returns the text that is now sure to come before any stop text. Once stopped()
  // is true nothing more comes out.
  std::string Add(std::string_view piece);

  // The end of the text: what was held back.
  std::string Finish();

  bool stopped() const { return stopped_; }

 private:
  // Length of the longest end of held_ that is a proper start of some stop text.
  size_t UnsureLength() const;

  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace cairn::engine
