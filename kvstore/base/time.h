// Points in time and spans between them: one type for the steady clock, one for the calendar.
#pragma once

#include <compare>
#include <cstdint>

namespace cairn::kv {

// A span of time in nanoseconds. May be negative.
struct Nanos {
  int64_t value = 0;
  auto operator<=>(const Nanos&) const = default;
};
constexpr Nanos Micros(int64_t count) { return {count * 1000}; }
constexpr Nanos Millis(int64_t count) { return {count * 1000 * 1000}; }
constexpr Nanos Seconds(int64_t count) { return {count * 1000 * 1000 * 1000}; }
constexpr Nanos operator+(Nanos a, Nanos b) { return {a.value + b.value}; }
constexpr Nanos operator-(Nanos a, Nanos b) { return {a.value - b.value}; }

// A point on the steady clock of one process. Deadlines are Instants; they never reach a disk.
struct Instant {
  int64_t nanos = 0;
  auto operator<=>(const Instant&) const = default;
};
constexpr Instant operator+(Instant at, Nanos span) { return {at.nanos + span.value}; }
constexpr Instant operator-(Instant at, Nanos span) { return {at.nanos - span.value}; }
constexpr Nanos operator-(Instant later, Instant earlier) { return {later.nanos - earlier.nanos}; }
inline constexpr Instant kNever{INT64_MAX};

// A point in calendar time, in milliseconds since 1970-01-01 UTC. Expiries are UnixMillis, so that
// they survive a restart.
struct UnixMillis {
  int64_t value = 0;
  auto operator<=>(const UnixMillis&) const = default;
};

}  // namespace cairn::kv
