// Timers, posted calls and workers on both engines.
#include "kvstore/os/poller.h"

#include <gmock/gmock.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "kvstore/async/gate.h"
#include "kvstore/base/random.h"
#include "kvstore/os/thread_workers.h"
#include "tests/unit/kvstore/os/os_fixture.h"

namespace cairn::kv {
namespace {

using PollerTest = OsTest;
KV_ON_BOTH_ENGINES(PollerTest);

TEST_P(PollerTest, SaysWhichEngineItRunsOn) {
  if (GetParam() == PollerEngine::kEpoll) {
    EXPECT_EQ(poller_->engine_name(), "epoll");
    EXPECT_TRUE(log_.Has("epoll"));
  } else {
    EXPECT_EQ(poller_->engine_name() == "epoll", log_.Has("io_uring is not to be had"));
  }
}

Task<void> NoteAt(Clock& clock, Instant at, Event* cancel, std::vector<Nanos>& late) {
  co_await clock.SleepUntil(at, cancel);
  late.push_back(clock.Now() - at);
}

TEST_P(PollerTest, ThousandsOfTimersFireAndNoneEarly) {
  Random random(1);
  std::vector<Nanos> late;
  Gate gate(loop_);
  const Instant start = clock_->Now();
  for (int i = 0; i < 5000; ++i) {
    const Instant at = start + Micros(static_cast<int64_t>(random.Below(30'000)));
    gate.Hold(NoteAt(*clock_, at, nullptr, late));
  }
  poller_->Await(gate.Close());
  ASSERT_EQ(late.size(), 5000u);
  EXPECT_GE(*std::min_element(late.begin(), late.end()), Nanos{0});
}

TEST_P(PollerTest, CancelEndsALongSleep) {
  std::vector<Nanos> late;
  Event cancel(loop_);
  Gate gate(loop_);
  for (int i = 0; i < 1000; ++i) {
    gate.Hold(NoteAt(*clock_, clock_->Now() + Seconds(3600), &cancel, late));
  }
  cancel.Set();
  poller_->Await(gate.Close());
  EXPECT_EQ(late.size(), 1000u);
  EXPECT_TRUE(poller_->timers().empty());
}

TEST_P(PollerTest, CallsPostedByOtherThreadsWakeASleepingLoop) {
  constexpr int kThreads = 3;
  constexpr int kCalls = 2000;
  std::atomic<bool> stop = false;
  int calls = 0;
  std::vector<std::thread> posters;
  for (int i = 0; i < kThreads; ++i) {
    posters.emplace_back([&] {
      for (int call = 0; call < kCalls; ++call) {
        loop_.Post([&] {
          if (++calls == kThreads * kCalls) stop = true;
        });
      }
    });
  }
  poller_->Run(stop);
  for (std::thread& poster : posters) poster.join();
  EXPECT_EQ(calls, kThreads * kCalls);
}

TEST_P(PollerTest, EveryPostOfAPingPongIsHeard) {
  // One call at a time, so that the loop goes to sleep between them: a lost wake-up hangs here.
  int calls = 0;
  for (; calls < 300;) {
    const int before = calls;
    std::thread poster([&] { loop_.Post([&calls] { ++calls; }); });
    poller_->RunUntil([&] { return calls > before; });
    poster.join();
  }
  EXPECT_EQ(calls, 300);
}

Task<void> RunMany(ThreadWorkers& workers, std::atomic<int>& runs, int& finished) {
  for (int i = 0; i < 50; ++i) {
    co_await workers.Run([&runs] { ++runs; });
    ++finished;
  }
}

TEST_P(PollerTest, WorkersRunElsewhereAndFinishOnTheLoop) {
  ThreadWorkers workers(*poller_, 3);
  std::thread::id ran_on;
  poller_->Await(workers.Run([&ran_on] { ran_on = std::this_thread::get_id(); }));
  EXPECT_NE(ran_on, std::thread::id());
  EXPECT_NE(ran_on, std::this_thread::get_id());

  std::atomic<int> runs = 0;
  int finished = 0;
  Gate gate(loop_);
  for (int i = 0; i < 40; ++i) gate.Hold(RunMany(workers, runs, finished));
  poller_->Await(gate.Close());
  EXPECT_EQ(runs, 2000);
  EXPECT_EQ(finished, 2000);
}

// From now on `call` fails with EPERM on this thread, as in most container runtimes.
bool Forbid(uint32_t call) {
  const uint32_t refuse = SECCOMP_RET_ERRNO | EPERM;
  std::array<sock_filter, 4> rules{{
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, call},
      {BPF_RET | BPF_K, 0, 0, refuse},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  }};
  const sock_fprog program{.len = rules.size(), .filter = rules.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// The engine that serves a call on a loop of its own where `forbidden` is refused.
std::string EngineWithout(uint32_t forbidden, PollerEngine engine, KeptLog& log) {
  std::string name;
  std::thread sandboxed([&] {
    if (!Forbid(forbidden)) return;
    Loop loop;
    const auto poller = Poller::Create(loop, log, {.engine = engine});
    name = poller.ok() ? poller.value()->engine_name() : poller.status().ToString();
    if (!poller.ok()) return;
    bool done = false;
    std::thread other([&] { loop.Post([&done] { done = true; }); });
    poller.value()->RunUntil([&done] { return done; });
    other.join();
  });
  sandboxed.join();
  return name;
}

TEST(Poller, WhereIoUringIsForbiddenEpollIsTakenAndTheLogSaysSo) {
  for (const uint32_t call : {__NR_io_uring_setup, __NR_io_uring_enter}) {
    KeptLog log;
    const std::string name = EngineWithout(call, PollerEngine::kAuto, log);
    if (name.empty()) GTEST_SKIP() << "this kernel has no seccomp filters";
    EXPECT_EQ(name, "epoll");
    EXPECT_TRUE(log.Has("io_uring is not to be had: Operation not permitted; disks use threads"));
    EXPECT_THAT(EngineWithout(call, PollerEngine::kUring, log),
                ::testing::HasSubstr("io_uring is not to be had"));
  }
}

TEST(Poller, EnginesHaveNames) {
  EXPECT_EQ(ParsePollerEngine("auto").value(), PollerEngine::kAuto);
  EXPECT_EQ(ParsePollerEngine("io_uring").value(), PollerEngine::kUring);
  EXPECT_EQ(ParsePollerEngine("epoll").value(), PollerEngine::kEpoll);
  const auto unknown = ParsePollerEngine("kqueue");
  EXPECT_EQ(unknown.code(), Code::kInvalid);
  EXPECT_THAT(unknown.status().message(), ::testing::HasSubstr("take auto, io_uring or epoll"));
}

TEST(Poller, AnEngineThatIsAskedForIsTheOneThatIsGiven) {
  Loop loop;
  KeptLog log;
  const PollerOptions options{.engine = PollerEngine::kUring};
  const Result<std::unique_ptr<Poller>> poller = Poller::Create(loop, log, options);
  if (poller.ok()) {
    EXPECT_EQ(poller.value()->engine_name(), "io_uring");
  } else {
    EXPECT_EQ(poller.code(), Code::kUnavailable);
  }
}

}  // namespace
}  // namespace cairn::kv
