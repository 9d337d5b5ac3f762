// A loop on each of the two engines: every test of kvstore/os runs on both.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kvstore/os/poller.h"
#include "kvstore/os/system_clock.h"

namespace cairn::kv {

class KeptLog final : public Log {
 public:
  void Write(LogLevel, std::string_view message) override {
    const std::lock_guard lock(mutex_);
    lines_.emplace_back(message);
  }
  bool Has(const std::string& part) { return Count(part) > 0; }
  size_t Count(const std::string& part) {
    const std::lock_guard lock(mutex_);
    size_t count = 0;
    for (const std::string& line : lines_) {
      if (line.find(part) != std::string::npos) ++count;
    }
    return count;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;  // Protected by mutex_.
};

// Where this machine forbids io_uring its cases run on what kAuto takes instead.
class OsTest : public ::testing::TestWithParam<PollerEngine> {
 protected:
  void SetUp() override {
    const PollerOptions options{.engine = GetParam()};
    Result<std::unique_ptr<Poller>> poller = Poller::Create(loop_, log_, options);
    ASSERT_TRUE(poller.ok()) << poller.status().ToString();
    poller_ = std::move(poller).value();
    clock_ = std::make_unique<SystemClock>(*poller_);
  }

  KeptLog log_;
  Loop loop_;
  std::unique_ptr<Poller> poller_;
  std::unique_ptr<SystemClock> clock_;
};

inline std::string EngineName(const ::testing::TestParamInfo<PollerEngine>& info) {
  return info.param == PollerEngine::kEpoll ? "Epoll" : "Auto";
}
#define KV_ON_BOTH_ENGINES(fixture)                                                           \
  INSTANTIATE_TEST_SUITE_P(Engine, fixture,                                                   \
                           ::testing::Values(PollerEngine::kAuto, PollerEngine::kEpoll),      \
                           EngineName)

}  // namespace cairn::kv
