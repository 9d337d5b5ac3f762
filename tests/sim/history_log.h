// What a simulated run did and got, as a history that tests/support/history.py judges.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kvstore/base/bytes.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_disk.h"
#include "tests/sim/store_checker.h"

namespace cairn::sim {

// One file; the format is described in tests/support/history.py. Moments that the virtual clock
// does not tell apart are told a nanosecond later each, so that the order of events shows.
class HistoryLog {
 public:
  // What the operations of one call have in common.
  struct Call {
    std::string_view op;  // put, get, look, delete.
    kv::Nanos patience;
    std::string_view node = {};  // Where it was called, in a cluster.
  };
  struct PutTerms {
    int64_t ttl_millis = 0;
    bool refreshed = false;
    bool durable = false;
    kv::ByteSpan bytes;
  };

  // Null when the file cannot be made.
  static std::unique_ptr<HistoryLog> Create(const std::string& path, const SimClock& clock);
  ~HistoryLog() { std::fclose(file_); }
  HistoryLog(const HistoryLog&) = delete;
  HistoryLog& operator=(const HistoryLog&) = delete;

  // Returns the operation's number for End. `terms` of a put only.
  uint64_t Begin(const Call& call, BlockKey key, const std::optional<PutTerms>& terms = {});
  // `bytes`: what a get read, when it was ok.
  void End(uint64_t operation, std::string_view result, kv::ByteSpan bytes = {});

  // What a node has cannot be had in this time: nanoseconds of the virtual clock.
  void Fault(std::string_view node, kv::Instant begin, kv::Instant end);
  // What it had is gone for good.
  void Lost(std::string_view node);
  // All stripes have all their shards again.
  void Repaired();
  // The process dies; a power cut also takes what had not been made to last.
  void Crash(CrashMode mode);

 private:
  HistoryLog(std::FILE* file, const SimClock& clock) : file_(file), clock_(clock) {}
  double Now();

  std::FILE* file_;
  const SimClock& clock_;
  int64_t told_ = 0;  // Nanoseconds of the last event.
  uint64_t operations_ = 0;
};

}  // namespace cairn::sim
