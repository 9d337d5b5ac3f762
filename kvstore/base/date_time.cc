// The C library reads the calendar; what follows the seconds it does not know.
#include "kvstore/base/date_time.h"

#include <cstdio>
#include <ctime>

namespace cairn::kv {
namespace {

// Minutes ahead of UTC; nothing unless `text` is an offset as a whole.
std::optional<int64_t> ParseOffset(const char* text) {
  if (text[0] == 'Z' && text[1] == '\0') return 0;
  if (text[0] != '+' && text[0] != '-') return std::nullopt;
  unsigned hours = 0;
  unsigned minutes = 0;
  int used = 0;
  if (std::sscanf(text + 1, "%2u:%2u%n", &hours, &minutes, &used) != 2) return std::nullopt;
  if (text[1 + used] != '\0' || hours > 23 || minutes > 59) return std::nullopt;
  const int64_t ahead = int64_t{hours} * 60 + minutes;
  return text[0] == '-' ? -ahead : ahead;
}

}  // namespace

std::optional<UnixMillis> ParseDateTime(const std::string& text) {
  std::tm calendar{};
  const char* rest = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &calendar);
  if (rest == nullptr) rest = ::strptime(text.c_str(), "%Y-%m-%d %H:%M:%S", &calendar);
  if (rest == nullptr) return std::nullopt;
  int64_t millis = 0;
  if (*rest == '.') {
    ++rest;
    for (int64_t digit = 100; *rest >= '0' && *rest <= '9'; ++rest, digit /= 10) {
      millis += digit * (*rest - '0');
    }
  }
  const std::optional<int64_t> ahead = ParseOffset(rest);
  if (!ahead) return std::nullopt;
  return UnixMillis{(int64_t{::timegm(&calendar)} - *ahead * 60) * 1000 + millis};
}

}  // namespace cairn::kv
