// Whom a node leaves alone: who does not answer, not who waits for others.
#include "kvstore/peer/peer_caller.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/support/status_matchers.h"
#include "tests/unit/kvstore/peer/target_world.h"

namespace cairn::kv {
namespace {

using testing::HasCode;
using testing::IsOk;

constexpr NodeId kMe{1};
constexpr NodeId kOther{2};

// Asks a node of which the test says what it answers.
class PeerCallerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    rig_->node(kOther).Serve([this](NodeId, Bytes body, Bytes) { return Answer(std::move(body)); });
  }
  void TearDown() override {
    if (!release_.is_set()) release_.Set();
    rig_->RunFor(Seconds(1));
  }

  // What asks a home waits for the release; with `hangs` everything does.
  Task<Network::Reply> Answer(Bytes body) {
    const auto request = peer::ParseRequest(std::as_const(body).span());
    EXPECT_THAT(request, IsOk());
    if (hangs_ || request.value().first.verb == peer::Verb::kAskHome) co_await release_;
    ++answered_;
    const peer::AnswerHead head{.epoch = 1};
    const Result<peer::MapSize> size(peer::MapSize{.bytes = 3});
    co_return Network::Reply(peer::EncodeAnswer(head, size), Bytes());
  }
  Code AskHome() {
    Task<Result<Bytes>> asking = caller_.AskHome(kOther, Bytes(1), Soon());
    return rig_->Await(std::move(asking)).code();
  }
  Code FetchMap() { return rig_->Await(caller_.FetchMap(kOther, Soon())).code(); }
  Instant Soon() { return rig_->clock().Now() + Millis(300); }

  const std::unique_ptr<NetworkRig> rig_ = MakeSimRig();
  FakeMap map_;
  PeerCaller caller_{rig_->clock(), rig_->node(kMe), map_};
  Event release_{rig_->loop()};
  bool hangs_ = false;
  int answered_ = 0;
};

TEST_F(PeerCallerTest, WhoWaitsForOthersIsNotSilent) {
  EXPECT_EQ(AskHome(), Code::kDeadline);
  const int before = answered_;
  (void)FetchMap();
  EXPECT_GT(answered_, before);
}

TEST_F(PeerCallerTest, WhoHangsIsLeftAloneForASecond) {
  hangs_ = true;
  EXPECT_EQ(AskHome(), Code::kDeadline);
  EXPECT_EQ(FetchMap(), Code::kUnavailable);
  rig_->RunFor(Seconds(1));
  EXPECT_EQ(FetchMap(), Code::kDeadline);  // It is asked again.
}

}  // namespace
}  // namespace cairn::kv
