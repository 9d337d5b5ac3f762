// What needs a device: memory that stays registered, or cannot be, and peers without the secret.
// It runs in the virtual machine of tests/integration/rdma.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <sstream>
#include <string>

#include "kvstore/base/random.h"
#include "kvstore/os/poller.h"
#include "kvstore/os/system_clock.h"
#include "kvstore/rdma/rdma_network.h"
#include "tests/support/status_matchers.h"

namespace cairn::kv {
namespace {

using testing::HasCode;
using testing::IsOk;
using Answered = Result<Network::Answer>;

constexpr NodeId kCaller{1};
constexpr NodeId kServer{2};
constexpr size_t kSize = 1 * kMiB;

class RdmaDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const given = std::getenv("CAIRN_RDMA_ADDRESSES");
    if (given == nullptr) GTEST_SKIP() << "no RDMA on this machine (CAIRN_RDMA_ADDRESSES)";
    std::istringstream(given) >> here_ >> there_;
    Random(1).Fill(given_.span());
    server_ = Create(kServer, there_, [](RdmaNetworkOptions&) {});
    // What came goes back, or `given_` when nothing came.
    server_->Serve([this](NodeId, Bytes body, Bytes payload) {
      return Answer(std::move(body), std::move(payload));
    });
  }
  void TearDown() override {
    if (caller_ != nullptr) poller_->Await(caller_->Stop());
    if (server_ != nullptr) poller_->Await(server_->Stop());
  }
  Task<Network::Reply> Answer(Bytes body, Bytes payload) {
    if (payload.empty()) payload = Bytes::CopyOf(given_.span());
    co_return Network::Reply(std::move(body), std::move(payload));
  }

  std::unique_ptr<RdmaNetwork> Create(NodeId self, const std::string& address,
                                      const std::function<void(RdmaNetworkOptions&)>& change) {
    RdmaNetworkOptions options{.self = self,
                               .addresses = {address + ":0"},
                               .secret = "a secret of this test",
                               .connect_timeout = Seconds(10),
                               .ack_timeout = 16};
    change(options);
    return RdmaNetwork::Create(*poller_, *clock_, log_, options).value();
  }
  void CreateCaller(const std::function<void(RdmaNetworkOptions&)>& change) {
    caller_ = Create(kCaller, here_, change);
    const std::string address = there_ + ":" + std::to_string(server_->port());
    ASSERT_THAT(caller_->SetPeer(kServer, {address}), IsOk());
  }
  Answered Call(std::vector<ByteSpan> payload, MutableByteSpan into) {
    Network::Outgoing request(Bytes(), std::move(payload));
    return poller_->Await(
        caller_->Call(kServer, std::move(request), into, clock_->Now() + Seconds(60)));
  }
  void ExpectGiven(MutableByteSpan into) {
    std::memset(into.data(), 0, into.size());
    ASSERT_THAT(Call({}, into), IsOk());
    EXPECT_EQ(std::memcmp(into.data(), given_.data(), kSize), 0);
  }
  void AddRegion(MutableByteSpan memory) {
    RdmaRegion region;
    region.memory = memory;
    ASSERT_THAT(caller_->AddRegion(std::move(region)), IsOk());
  }

  std::string here_;
  std::string there_;
  Bytes given_{kSize};
  Loop loop_;
  NullLog log_;
  std::unique_ptr<Poller> poller_ = Poller::Create(loop_, log_, PollerOptions()).value();
  std::unique_ptr<SystemClock> clock_ = std::make_unique<SystemClock>(*poller_);
  std::unique_ptr<RdmaNetwork> server_;
  std::unique_ptr<RdmaNetwork> caller_;
};

TEST_F(RdmaDeviceTest, ARegionIsRegisteredOnceAndOtherMemoryForEachCall) {
  CreateCaller([](RdmaNetworkOptions&) {});
  Bytes into(kSize);
  AddRegion(into.span());
  ExpectGiven(into.span());
  const uint64_t registrations = caller_->stats().registrations;
  EXPECT_EQ(caller_->stats().cached_bytes, kSize);
  ExpectGiven(into.span());
  ExpectGiven(into.span());
  EXPECT_EQ(caller_->stats().registrations, registrations);
  Bytes other(kSize);
  ExpectGiven(other.span());
  ExpectGiven(other.span());
  EXPECT_EQ(caller_->stats().registrations, registrations + 2);
  caller_->RemoveRegion(into.span());
  EXPECT_EQ(caller_->stats().cached_bytes, 0u);
  ExpectGiven(into.span());
}

// It stays registered: nothing but the peer's word, or the end of the connection, keeps bytes out.
TEST_F(RdmaDeviceTest, NothingIsWrittenIntoARegionAfterALateCall) {
  given_ = Bytes(16 * kSize);
  CreateCaller([](RdmaNetworkOptions&) {});
  Bytes into(16 * kSize);
  AddRegion(into.span());
  ASSERT_THAT(Call({}, into.span()), IsOk());
  for (int64_t micros = 500; micros < 100'000; micros = micros * 3 / 2) {
    const Instant deadline = clock_->Now() + Micros(micros);
    Network::Outgoing request((Bytes()));
    const Answered answer =
        poller_->Await(caller_->Call(kServer, std::move(request), into.span(), deadline));
    std::memset(into.data(), 0x5a, into.size());
    poller_->Await(clock_->SleepUntil(clock_->Now() + Millis(30), nullptr));
    ASSERT_EQ(std::count(into.data(), into.data() + into.size(), 0x5a),
              static_cast<ptrdiff_t>(into.size()));
  }
  EXPECT_GT(caller_->stats().calls_cancelled, 0u);
}

TEST_F(RdmaDeviceTest, RegionsBeyondTheBoundAreForgottenTheLongestUnusedFirst) {
  CreateCaller([](RdmaNetworkOptions& options) { options.cached_bytes_max = 2 * kSize; });
  Bytes first(kSize);
  Bytes second(kSize);
  Bytes third(kSize);
  for (Bytes* const memory : {&first, &second, &third}) AddRegion(memory->span());
  ExpectGiven(first.span());
  ExpectGiven(second.span());
  ExpectGiven(first.span());
  ExpectGiven(third.span());
  EXPECT_EQ(caller_->stats().cached_bytes, 2 * kSize);
  const uint64_t registrations = caller_->stats().registrations;
  ExpectGiven(first.span());
  EXPECT_EQ(caller_->stats().registrations, registrations);
  ExpectGiven(second.span());
  EXPECT_EQ(caller_->stats().registrations, registrations + 1);
}

TEST_F(RdmaDeviceTest, MemoryThatNoDeviceReachesGoesThroughPinnedMemory) {
  CreateCaller([](RdmaNetworkOptions&) {});
  Bytes accelerator(2 * kSize);
  size_t copied = 0;
  RdmaRegion region;
  region.memory = accelerator.span();
  region.copy = [&copied](void* to, const void* from, size_t size) {
    copied += size;
    std::memcpy(to, from, size);
  };
  ASSERT_THAT(caller_->AddRegion(std::move(region)), IsOk());
  ExpectGiven(accelerator.span().first(kSize));
  EXPECT_EQ(copied, kSize);
  const ByteSpan sent = std::as_const(accelerator).span().first(kSize);
  ASSERT_THAT(Call({sent}, accelerator.span().subspan(kSize)), IsOk());
  EXPECT_EQ(copied, 3 * kSize);
  EXPECT_EQ(std::memcmp(accelerator.data() + kSize, given_.data(), kSize), 0);
}

TEST_F(RdmaDeviceTest, APayloadOfVeryManyPiecesArrivesWhole) {
  CreateCaller([](RdmaNetworkOptions&) {});
  std::vector<ByteSpan> pieces;
  for (size_t at = 0; at < kSize; at += kSize / 1024) {
    pieces.push_back(std::as_const(given_).span().subspan(at, kSize / 1024));
  }
  Bytes into(kSize);
  ASSERT_THAT(Call(std::move(pieces), into.span()), IsOk());
  EXPECT_EQ(std::memcmp(into.data(), given_.data(), kSize), 0);
}

TEST_F(RdmaDeviceTest, WhoDoesNotKnowTheSecretIsRefused) {
  CreateCaller([](RdmaNetworkOptions& options) { options.secret = "guessed: 1234567"; });
  EXPECT_THAT(Call({}, MutableByteSpan()), HasCode(Code::kUnavailable));
  EXPECT_EQ(caller_->stats().hellos_unproven, 1u);
  EXPECT_EQ(server_->stats().requests, 0u);
}

TEST_F(RdmaDeviceTest, AnotherClusterIsRefused) {
  CreateCaller([](RdmaNetworkOptions& options) { options.cluster = "another"; });
  EXPECT_THAT(Call({}, MutableByteSpan()), HasCode(Code::kUnavailable));
  EXPECT_EQ(caller_->stats().hellos_refused, 1u);
}

}  // namespace
}  // namespace cairn::kv
