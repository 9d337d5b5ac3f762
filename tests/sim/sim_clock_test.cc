// Virtual time, sleeps and simulated workers.
#include "tests/sim/sim_clock.h"

#include <gtest/gtest.h>

#include <vector>

#include "kvstore/async/gate.h"
#include "tests/sim/sim_workers.h"

namespace cairn::sim {
namespace {

using kv::Event;
using kv::Gate;
using kv::Instant;
using kv::Loop;
using kv::Millis;
using kv::Seconds;
using kv::Task;

Task<void> NoteAt(SimClock& clock, Instant at, Event* cancel, std::vector<int>& notes, int value) {
  co_await clock.SleepUntil(at, cancel);
  notes.push_back(value);
}

TEST(SimClock, WakesSleepersInTheOrderOfTheirTimes) {
  Loop loop;
  SimClock clock(loop);
  std::vector<int> notes;
  Gate gate(loop);
  const Instant start = clock.Now();
  gate.Hold(NoteAt(clock, start + Seconds(2), nullptr, notes, 2));
  gate.Hold(NoteAt(clock, start + Seconds(1), nullptr, notes, 1));
  gate.Hold(NoteAt(clock, start + Seconds(2), nullptr, notes, 3));
  clock.RunUntilIdle();
  EXPECT_EQ(notes, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(clock.Now(), start + Seconds(2));
  clock.Await(gate.Close());
}

TEST(SimClock, CancelEndsASleepAndItsTimerNeverFires) {
  Loop loop;
  SimClock clock(loop);
  std::vector<int> notes;
  Event cancel(loop);
  Gate gate(loop);
  gate.Hold(NoteAt(clock, clock.Now() + Seconds(9), &cancel, notes, 1));
  gate.Hold(NoteAt(clock, kv::kNever, &cancel, notes, 2));
  const Instant before = clock.Now();
  cancel.Set();
  loop.RunReady();
  EXPECT_EQ(notes, (std::vector<int>{1, 2}));
  EXPECT_FALSE(clock.Step());
  EXPECT_EQ(clock.Now(), before);
  clock.Await(gate.Close());
}

TEST(SimClock, CancelAndTimerInOneInstantWakeOnce) {
  Loop loop;
  SimClock clock(loop);
  std::vector<int> notes;
  Event cancel(loop);
  Gate gate(loop);
  const Instant at = clock.Now() + Seconds(1);
  clock.At(at, [&cancel] { cancel.Set(); });
  gate.Hold(NoteAt(clock, at, &cancel, notes, 1));
  EXPECT_TRUE(clock.Step());
  EXPECT_TRUE(clock.Step());  // Both have happened before anybody could run.
  loop.RunReady();
  EXPECT_EQ(notes, (std::vector<int>{1}));
  clock.Await(gate.Close());
}

TEST(SimClock, CalendarStepsWhileTheSteadyClockDoesNot) {
  Loop loop;
  SimClock clock(loop);
  clock.SetUnix(kv::UnixMillis{5'000});
  EXPECT_EQ(clock.UnixNow().value, 5'000);
  clock.RunUntil(clock.Now() + Millis(250));
  EXPECT_EQ(clock.UnixNow().value, 5'250);
  const Instant before = clock.Now();
  clock.SetUnix(kv::UnixMillis{1'000});
  EXPECT_EQ(clock.UnixNow().value, 1'000);
  EXPECT_EQ(clock.Now(), before);
}

Task<int> RunOn(SimWorkers& workers) {
  int result = 0;
  co_await workers.Run([&result] { result = 7; });
  co_return result;
}

TEST(SimWorkers, RunTheCallAndCostVirtualTime) {
  Loop loop;
  SimClock clock(loop);
  SimWorkers workers(clock, 1, Millis(1), Millis(2));
  const Instant before = clock.Now();
  EXPECT_EQ(clock.Await(RunOn(workers)), 7);
  EXPECT_GE(clock.Now(), before + Millis(1));
  EXPECT_LE(clock.Now(), before + Millis(2));
}

}  // namespace
}  // namespace cairn::sim
