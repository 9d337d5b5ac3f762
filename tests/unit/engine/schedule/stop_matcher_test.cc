// The stop matcher against a search over the whole text, at every way to cut it in two.
#include "engine/schedule/stop_matcher.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace cairn::engine {
namespace {

std::string Naive(const std::string& text, const std::vector<std::string>& stops) {
  size_t first = text.size();
  for (const std::string& stop : stops) first = std::min(first, text.find(stop));
  return text.substr(0, first);
}

TEST(StopMatcher, EqualsASearchOverTheWholeTextHoweverItIsCut) {
  const std::vector<std::string> stops = {"aab", "END", "b\n"};
  for (const std::string text :
       {"aaaab rest", "no stop here", "EN", "ENEND", "aab", "xb\ny", "aa"}) {
    for (size_t first = 0; first <= text.size(); ++first) {
      for (size_t second = first; second <= text.size(); ++second) {
        StopMatcher matcher(stops);
        std::string out = matcher.Add(text.substr(0, first));
        out += matcher.Add(text.substr(first, second - first));
        out += matcher.Add(text.substr(second));
        out += matcher.Finish();
        EXPECT_EQ(out, Naive(text, stops)) << text << " cut at " << first << ", " << second;
        EXPECT_EQ(matcher.stopped(), Naive(text, stops) != text);
      }
    }
  }
}

TEST(StopMatcher, HoldsBackOnlyWhatMayBeAStart) {
  StopMatcher matcher({"STOP"});
  EXPECT_EQ(matcher.Add("abcST"), "abc");
  EXPECT_EQ(matcher.Add("x"), "STx");
  EXPECT_EQ(matcher.Add("STOP and more"), "");
  EXPECT_EQ(matcher.Add("never"), "");
}

}  // namespace
}  // namespace cairn::engine
