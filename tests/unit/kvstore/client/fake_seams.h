// A clock and workers for targets in memory, and a gauge of what they are asked.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "kvstore/index/index_codec.h"
#include "kvstore/io/clock.h"
#include "kvstore/io/workers.h"
#include "kvstore/types/ids.h"

namespace cairn::kv {

// At once when there is nothing to wait for.
inline Task<void> WhileHeld(Event* release) {
  if (release == nullptr) co_return;
  Event& released = *release;
  co_await released;
}

class FakeClock final : public Clock {
 public:
  Instant Now() const override { return {unix_.value * 1'000'000}; }
  UnixMillis UnixNow() const override { return unix_; }
  Task<void> SleepUntil(Instant, Event*) override { co_return; }
  void Advance(int64_t millis) { unix_.value += millis; }

 private:
  UnixMillis unix_{1'700'000'000'000};
};

class InlineWorkers final : public Workers {
 public:
  Task<void> Run(std::function<void()> call) override {
    call();
    co_return;
  }
};

// Counts the index reads of all targets that share it, which then take a few turns of the loop.
struct LookupGauge {
  explicit LookupGauge(Loop& shared_loop) : loop(shared_loop) {}
  Task<void> Pass(RunId run) {
    runs.insert(run);
    peak = std::max(peak, ++in_flight);
    for (int turn = 0; turn < 5; ++turn) co_await loop.Yield();
    --in_flight;
  }

  Loop& loop;
  std::set<RunId> runs;  // Asked for.
  int in_flight = 0;
  int peak = 0;
};

// The namespaces that a target lists.
struct FakeSpaces {
  void Save(const SpaceRecord& record) {
    if (record.deleted_at.value == 0) {
      spaces.insert_or_assign(record.name, record);
      return;
    }
    const auto living = spaces.find(record.name);
    if (living != spaces.end() && living->second.id == record.id) spaces.erase(living);
    tombstones.insert_or_assign(record.id, record);
  }
  std::vector<SpaceRecord> List() const {
    std::vector<SpaceRecord> list;
    for (const auto& [name, record] : spaces) list.push_back(record);
    for (const auto& [id, record] : tombstones) list.push_back(record);
    return list;
  }

  std::map<std::string, SpaceRecord> spaces;
  std::map<NamespaceId, SpaceRecord> tombstones;
};

}  // namespace cairn::kv
