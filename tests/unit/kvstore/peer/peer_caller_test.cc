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
    rig_->Await(caller_.Stop());
  }

  // What asks a home waits for the release; with `hangs` everything does.
  Task<Network::Reply> Answer(Bytes body) {
    const auto request = peer::ParseRequest(std::as_const(body).span());
    EXPECT_THAT(request, IsOk());
    if (hangs_ || request.value().first.verb == peer::Verb::kAskHome) co_await release_;
    if (late_ > Nanos()) co_await rig_->clock().SleepUntil(rig_->clock().Now() + late_, nullptr);
    ++answered_;
    const peer::AnswerHead head{.epoch = 1};
    const Result<peer::MapSize> size(peer::MapSize{.bytes = 3});
    co_return Network::Reply(peer::EncodeAnswer(head, size), Bytes());
  }
  Code AskHome(Nanos patience) {
    const Instant deadline = rig_->clock().Now() + patience;
    Task<Result<Bytes>> asking = caller_.AskHome(kOther, Bytes(1), deadline);
    return rig_->Await(std::move(asking)).code();
  }
  Code FetchMap() { return rig_->Await(caller_.FetchMap(kOther, Soon())).code(); }
  Code Sync() {
    PeerCaller::Order order{.node = kOther, .target = {}, .verb = peer::Verb::kSync};
    order.message = peer::Encode(peer::SyncRequest()).value();
    order.deadline = rig_->clock().Now() + Seconds(1);
    return rig_->Await(caller_.Ask(std::move(order))).code();
  }
  Instant Soon() { return rig_->clock().Now() + Millis(300); }

  const std::unique_ptr<NetworkRig> rig_ = MakeSimRig();
  FakeMap map_;
  PeerCaller caller_{rig_->loop(), rig_->clock(), rig_->node(kMe), map_};
  Event release_{rig_->loop()};
  bool hangs_ = false;
  Nanos late_;
  int answered_ = 0;
};

TEST_F(PeerCallerTest, WhoWaitsForOthersIsNotSilent) {
  EXPECT_EQ(AskHome(Seconds(3)), Code::kDeadline);
  EXPECT_GT(answered_, 10);  // Small questions.
  const int before = answered_;
  (void)FetchMap();
  EXPECT_GT(answered_, before);
}

TEST_F(PeerCallerTest, WhoHangsIsKnownToLongBeforeTheDeadline) {
  hangs_ = true;
  const Instant began = rig_->clock().Now();
  std::vector<Task<Result<Bytes>>> calls;
  for (int i = 0; i < 5; ++i) {
    calls.push_back(caller_.AskHome(kOther, Bytes(1), began + Seconds(60)));
  }
  for (auto& call : calls) EXPECT_EQ(rig_->Await(std::move(call)).code(), Code::kUnavailable);
  EXPECT_LE(rig_->clock().Now(), began + Millis(400));
  const Instant known = rig_->clock().Now();
  EXPECT_EQ(AskHome(Seconds(60)), Code::kUnavailable);
  EXPECT_LT(rig_->clock().Now(), known + Millis(300));  // Before anything is waited for.
  rig_->RunFor(Seconds(6));
  EXPECT_EQ(AskHome(Seconds(60)), Code::kUnavailable);
  EXPECT_GT(rig_->clock().Now(), known + Seconds(6));  // It was asked again.
}

TEST_F(PeerCallerTest, WhoWasSilentIsAskedAgainOnceItAnswersAProbe) {
  hangs_ = true;
  EXPECT_EQ(AskHome(Seconds(60)), Code::kUnavailable);
  hangs_ = false;
  EXPECT_EQ(FetchMap(), Code::kUnavailable);
  PeerCaller::Order probe{.node = kOther, .target = {}};
  probe.message = peer::Encode(peer::ProbeRequest()).value();
  probe.deadline = rig_->clock().Now() + Seconds(1);
  EXPECT_THAT(rig_->Await(caller_.Ask(std::move(probe))), IsOk());
  const int before = answered_;
  (void)FetchMap();
  EXPECT_GT(answered_, before);
}

TEST_F(PeerCallerTest, WhoWasOnlySlowIsAskedAtOnce) {
  EXPECT_EQ(Sync(), Code::kOk);
  late_ = Millis(500);
  EXPECT_EQ(Sync(), Code::kUnavailable);
  late_ = Nanos();
  rig_->RunFor(Millis(100));  // Sooner than it would be asked a second time.
  EXPECT_EQ(Sync(), Code::kOk);
}

TEST_F(PeerCallerTest, WhoAnswersSlowlyIsNotSilent) {
  late_ = Millis(150);
  for (int i = 0; i < 5; ++i) EXPECT_NE(FetchMap(), Code::kUnavailable);
}

}  // namespace
}  // namespace cairn::kv
