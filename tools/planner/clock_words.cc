// Splits the text into runs of letters and of digits, and judges one by its neighbours.
#include "tools/planner/clock_words.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

namespace cairn::tools {
namespace {

bool Digit(char c) { return c >= '0' && c <= '9'; }
bool Letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

struct Word {
  std::string text;  // In lower case.
  size_t end = 0;
  char before = ' ';  // What stands right before it.
  bool number() const { return Digit(text[0]); }
};

std::vector<Word> Split(std::string_view text) {
  std::vector<Word> words;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '\\' && at + 1 < text.size()) {
      at += 2;  // "\nSunday" of a JSON string begins with no n.
      continue;
    }
    const auto same = Digit(text[at]) ? Digit : Letter;
    const size_t begin = at;
    while (at < text.size() && same(text[at])) ++at;
    if (at == begin) {
      ++at;
      continue;
    }
    Word word{.text = std::string(text.substr(begin, at - begin)), .end = at};
    if (begin > 0) word.before = text[begin - 1];
    std::transform(word.text.begin(), word.text.end(), word.text.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    words.push_back(std::move(word));
  }
  return words;
}

// "nov" and "november" of "november".
bool Names(const std::string& word, std::string_view name) {
  return word == name || (word.size() >= 3 && word.size() <= 4 && name.starts_with(word));
}

bool IsMonth(const std::string& word) {
  static constexpr std::array kMonths = {
      "january", "february", "march",     "april",   "may",      "june",
      "july",    "august",   "september", "october", "november", "december"};
  return std::any_of(kMonths.begin(), kMonths.end(),
                     [&](const char* month) { return Names(word, month); });
}

constexpr std::array kWeekdays = {"monday", "tuesday",  "wednesday", "thursday",
                                  "friday", "saturday", "sunday"};
bool IsWholeWeekday(const std::string& word) {
  return std::find(kWeekdays.begin(), kWeekdays.end(), word) != kWeekdays.end();
}
bool IsWeekday(const std::string& word) {
  return std::any_of(kWeekdays.begin(), kWeekdays.end(),
                     [&](const char* day) { return Names(word, day); });
}

bool IsHalfOfDay(const std::string& word) { return word == "am" || word == "pm"; }

bool IsDayOrYear(const std::string& word) {
  if (!Digit(word[0])) return false;
  if (word.size() == 4) return word.starts_with("19") || word.starts_with("20");
  return word.size() <= 2 && std::stoi(word) >= 1 && std::stoi(word) <= 31;
}

// Seconds or milliseconds since 1970, from 2014 on.
bool IsUnixTime(const std::string& word) {
  return (word.size() == 10 || word.size() == 13) && word[0] == '1' && word[1] >= '4' &&
         Digit(word[1]);
}

class Phrase {
 public:
  Phrase(std::span<const Word> words, size_t at) : words_(words), at_(at) {}

  bool IsDateOrTime() const {
    const std::string& word = words_[at_].text;
    if (IsWholeWeekday(word) || IsUnixTime(word)) return true;
    if (IsMonth(word)) return Near(IsDayOrYear, 1);
    if (IsWeekday(word)) return Near(IsMonth, 2);
    if (IsHalfOfDay(word)) return at_ > 0 && words_[at_ - 1].number();
    if (word == "st" || word == "nd" || word == "rd" || word == "th") return Near(IsMonth, 2);
    if (!words_[at_].number()) return false;
    return Near(IsHalfOfDay, 1) || IsClock() || (IsDayOrYear(word) && Near(IsMonth, 3));
  }

 private:
  template <typename Is>
  bool Near(Is is, size_t reach) const {
    const size_t begin = at_ - std::min(at_, reach);
    const size_t end = std::min(words_.size(), at_ + reach + 1);
    return std::any_of(words_.begin() + static_cast<std::ptrdiff_t>(begin),
                       words_.begin() + static_cast<std::ptrdiff_t>(end),
                       [&](const Word& word) { return is(word.text); });
  }
  // 10:30, and 10:30 before " AM".
  bool IsClock() const {
    const auto joined = [&](size_t later) {
      const Word &hours = words_[later - 1], &minutes = words_[later];
      return hours.number() && hours.text.size() <= 2 && minutes.number() &&
             minutes.text.size() == 2 && minutes.before == ':' &&
             hours.end + 1 + minutes.text.size() == minutes.end;
    };
    return (at_ > 0 && joined(at_)) || (at_ + 1 < words_.size() && joined(at_ + 1));
  }

  std::span<const Word> words_;
  size_t at_;
};

// 11月29日, 星期日, 10点30分: nothing there is parted by spaces.
bool IsInChineseDate(std::string_view text, size_t at) {
  at = std::min(at, text.size());
  size_t begin = at;
  while (begin > 0 && Digit(text[begin - 1])) --begin;
  size_t end = at;
  while (end < text.size() && Digit(text[end])) ++end;
  if (end > begin) {
    for (const std::string_view unit : {"年", "月", "日", "号", "点", "时", "分"}) {
      if (text.substr(end).starts_with(unit)) return true;
    }
  }
  // The change may be within a character: look a little before it.
  const std::string_view around = text.substr(at - std::min<size_t>(at, 8), 8);
  return around.find("星期") != around.npos || around.find("周") != around.npos;
}

}  // namespace

bool IsInDateOrTime(std::string_view text, size_t at) {
  const std::vector<Word> words = Split(text);
  for (size_t i = 0; i < words.size(); ++i) {
    // The end belongs to it: "1" became "10".
    const bool within = words[i].end >= at && words[i].end - words[i].text.size() <= at;
    if (within && Phrase(words, i).IsDateOrTime()) return true;
  }
  return IsInChineseDate(text, at);
}

}  // namespace cairn::tools
