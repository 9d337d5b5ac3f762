// What can be told without a device: options that make no sense, and regions of memory.
#include "kvstore/rdma/rdma_network.h"

#include <gtest/gtest.h>

#include <functional>

#include "kvstore/os/poller.h"
#include "kvstore/os/system_clock.h"
#include "tests/support/status_matchers.h"

namespace cairn::kv {
namespace {

using testing::HasCode;
using testing::IsOk;

class RdmaOptionsTest : public ::testing::Test {
 protected:
  Code CreateWith(const std::function<void(RdmaNetworkOptions&)>& change) {
    RdmaNetworkOptions options{.self = NodeId{1}, .secret = "a secret of this test"};
    change(options);
    const auto made = RdmaNetwork::Create(*poller_, *clock_, log_, options);
    return made.status().code();
  }

  Loop loop_;
  NullLog log_;
  std::unique_ptr<Poller> poller_ = Poller::Create(loop_, log_, PollerOptions()).value();
  std::unique_ptr<SystemClock> clock_ = std::make_unique<SystemClock>(*poller_);
};

TEST_F(RdmaOptionsTest, WhatMakesNoSenseIsInvalid) {
  const std::vector<std::function<void(RdmaNetworkOptions&)>> changes = {
      [](RdmaNetworkOptions& options) { options.secret = "short"; },
      [](RdmaNetworkOptions& options) { options.data_connections = 0; },
      [](RdmaNetworkOptions& options) { options.peer_bytes_max = kMiB; },
      [](RdmaNetworkOptions& options) { options.versions = {.min = 3, .max = 2}; },
      [](RdmaNetworkOptions& options) { options.retry_count = 7; },
      [](RdmaNetworkOptions& options) { options.not_ready_retry_count = 7; },
      [](RdmaNetworkOptions& options) { options.ack_timeout = 32; },
      [](RdmaNetworkOptions& options) { options.addresses = {"no port"}; },
      [](RdmaNetworkOptions& options) { options.addresses = {"unix:/tmp/socket"}; },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    EXPECT_EQ(CreateWith(changes[i]), Code::kInvalid) << i;
  }
}

TEST(RdmaRegions, MemoryIsFoundInTheRegionThatHasAllOfIt) {
  Bytes memory(64 * kKiB);
  RdmaRegions regions;
  RdmaRegion low;
  low.memory = memory.span().first(32 * kKiB);
  RdmaRegion high;
  high.memory = memory.span().subspan(32 * kKiB);
  ASSERT_THAT(regions.Add(high), IsOk());
  ASSERT_THAT(regions.Add(low), IsOk());
  const auto begin_of = [&](size_t at, size_t size) -> const uint8_t* {
    const RdmaRegions::Known* const known = regions.Find(memory.span().subspan(at, size));
    return known == nullptr ? nullptr : known->region.memory.data();
  };
  EXPECT_EQ(begin_of(0, 1), memory.data());
  EXPECT_EQ(begin_of(0, 32 * kKiB), memory.data());
  EXPECT_EQ(begin_of(32 * kKiB - 1, 2), nullptr);
  EXPECT_EQ(begin_of(32 * kKiB, 32 * kKiB), high.memory.data());
  EXPECT_EQ(begin_of(64 * kKiB - 1, 1), high.memory.data());
  regions.Remove(high.memory);
  EXPECT_EQ(begin_of(32 * kKiB, 1), nullptr);
  EXPECT_EQ(begin_of(1, 1), memory.data());
}

TEST(RdmaRegions, OneThatOverlapsAnotherIsInvalid) {
  Bytes memory(64 * kKiB);
  RdmaRegions regions;
  const auto add = [&](size_t at, size_t size) {
    RdmaRegion region;
    region.memory = memory.span().subspan(at, size);
    return regions.Add(std::move(region));
  };
  EXPECT_THAT(add(0, 0), HasCode(Code::kInvalid));
  ASSERT_THAT(add(1000, 1000), IsOk());
  EXPECT_THAT(add(1000, 1000), HasCode(Code::kInvalid));
  EXPECT_THAT(add(500, 501), HasCode(Code::kInvalid));
  EXPECT_THAT(add(1999, 5), HasCode(Code::kInvalid));
  EXPECT_THAT(add(1200, 100), HasCode(Code::kInvalid));
  EXPECT_THAT(add(0, 5000), HasCode(Code::kInvalid));
  EXPECT_THAT(add(500, 500), IsOk());
  EXPECT_THAT(add(2000, 5), IsOk());
}

}  // namespace
}  // namespace cairn::kv
