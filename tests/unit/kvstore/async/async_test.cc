// Tasks, gates and semaphores on a bare loop.
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "kvstore/async/event.h"
#include "kvstore/async/gate.h"
#include "kvstore/async/loop.h"
#include "kvstore/async/semaphore.h"
#include "kvstore/async/task.h"

namespace cairn::kv {
namespace {

Task<int> Ready(int value) { co_return value; }

Task<uint64_t> SumOfReady(int count) {
  uint64_t sum = 0;
  for (int i = 0; i < count; ++i) sum += static_cast<uint64_t>(co_await Ready(1));
  co_return sum;
}

TEST(Task, AwaitsMillionsOfReadyTasksWithoutDeepStack) {
  Task<uint64_t> sum = SumOfReady(3'000'000);
  ASSERT_TRUE(sum.done());
  EXPECT_EQ(sum.Take(), 3'000'000u);
}

Task<int> AddOne(Event& event, int value) {
  co_await event;
  co_return value + 1;
}
Task<int> AddTwo(Event& event, int value) {
  const int more = co_await AddOne(event, value);
  co_return more + 1;
}

TEST(Task, NeverResumesInsideTheCallThatCompletesIt) {
  Loop loop;
  Event event(loop);
  Task<int> task = AddTwo(event, 5);
  event.Set();
  EXPECT_FALSE(task.done());
  loop.RunReady();
  ASSERT_TRUE(task.done());
  EXPECT_EQ(task.Take(), 7);
}

Task<std::unique_ptr<int>> MoveOnly() { co_return std::make_unique<int>(9); }

TEST(Task, CarriesMoveOnlyResults) { EXPECT_EQ(*MoveOnly().Take(), 9); }

TEST(TaskDeathTest, DestroyingAnUnfinishedTaskStopsTheProcess) {
  EXPECT_DEATH(
      {
        Loop loop;
        auto event = new Event(loop);
        { Task<int> task = AddOne(*event, 1); }
      },
      "check failed: coroutine_.done\\(\\)");
}

Task<void> Note(Event& event, std::vector<int>& notes, int value) {
  co_await event;
  notes.push_back(value);
}

TEST(Gate, CloseWaitsForTheLastTask) {
  Loop loop;
  Event first(loop);
  Event second(loop);
  std::vector<int> notes;
  Gate gate(loop);
  gate.Hold(Note(second, notes, 2));
  gate.Hold(Note(first, notes, 1));
  Task<void> closing = gate.Close();
  first.Set();
  loop.RunReady();
  EXPECT_FALSE(closing.done());
  second.Set();
  loop.RunReady();
  EXPECT_TRUE(closing.done());
  EXPECT_EQ(notes, (std::vector<int>{1, 2}));
}

Task<void> Use(Semaphore& semaphore, uint64_t units, Event& until, std::vector<uint64_t>& order) {
  const Semaphore::Permit permit = co_await semaphore.Acquire(units);
  order.push_back(units);
  co_await until;
}

TEST(Semaphore, ServesInOrderAndDoesNotStarveTheLarge) {
  Loop loop;
  Event until(loop);
  Semaphore semaphore(loop, 4);
  std::vector<uint64_t> order;
  Gate gate(loop);
  gate.Hold(Use(semaphore, 3, until, order));
  gate.Hold(Use(semaphore, 4, until, order));  // Waits.
  gate.Hold(Use(semaphore, 1, until, order));  // Would fit, but came later.
  EXPECT_EQ(order, (std::vector<uint64_t>{3}));
  until.Set();
  loop.RunReady();
  EXPECT_EQ(order, (std::vector<uint64_t>{3, 4, 1}));
  EXPECT_EQ(semaphore.free(), 4u);
  const Task<void> closing = gate.Close();
  EXPECT_TRUE(closing.done());
}

TEST(Loop, RunsCallsPostedByOtherThreads) {
  Loop loop;
  std::vector<int> calls;
  std::thread poster([&] {
    for (int i = 0; i < 1000; ++i) loop.Post([&calls, i] { calls.push_back(i); });
  });
  poster.join();
  loop.RunReady();
  ASSERT_EQ(calls.size(), 1000u);
  EXPECT_EQ(calls[999], 999);
}

Task<void> Step(Loop& loop, std::vector<int>& order, int name) {
  co_await loop.Yield();
  order.push_back(name);
  if (name == 0) loop.Post([&order] { order.push_back(99); });
}

TEST(Loop, RunsPostedCallsBeforeTheRestOfABurst) {
  Loop loop;
  std::vector<int> order;
  std::vector<Task<void>> burst;
  for (int i = 0; i < 4; ++i) burst.push_back(Step(loop, order, i));
  loop.RunReady();
  EXPECT_EQ(order, (std::vector<int>{0, 99, 1, 2, 3}));
}

Task<void> PostAgain(Loop& loop, int& turns, bool& stop) {
  for (; turns < 100; ++turns) co_await loop.Yield();
  stop = true;
}

TEST(Loop, PostedCallsDoNotKeepTheRestFromRunning) {
  Loop loop;
  int turns = 0;
  bool stop = false;
  Task<void> rest = PostAgain(loop, turns, stop);
  std::function<void()> again = [&] {
    if (!stop) loop.Post(again);
  };
  loop.Post(again);
  loop.RunReady();
  EXPECT_EQ(turns, 100);
}

}  // namespace
}  // namespace cairn::kv
