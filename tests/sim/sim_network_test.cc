// The simulated network loses, delays and repeats only what it was told to.
#include "tests/sim/sim_network.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/status_matchers.h"

namespace cairn::sim {
namespace {

using kv::Bytes;
using kv::Code;
using kv::Millis;
using kv::NodeId;
using kv::Network;
using kv::Seconds;
using kv::Task;
using testing::HasCode;
using testing::IsOk;
using Answered = kv::Result<Network::Answer>;

constexpr NodeId kClient{1};
constexpr NodeId kServer{2};

class SimNetworkTest : public ::testing::Test {
 protected:
  void SetUp() override { Serve(); }
  void Serve() {
    network_.node(kServer).Serve([this](NodeId source, Bytes request, Bytes) {
      return Echo(source, std::move(request));
    });
  }
  Task<Network::Reply> Echo(NodeId source, Bytes request) {
    EXPECT_EQ(source, kClient);
    requests_.emplace_back(kv::AsText(request.span()));
    co_await clock_.SleepUntil(clock_.Now() + Millis(1), nullptr);
    co_return Network::Reply(std::move(request));
  }
  Task<Answered> Start(const std::string& text) {
    return network_.node(kClient).Call(kServer,
                                       Network::Outgoing(Bytes::CopyOf(kv::AsBytes(text))),
                                       kv::MutableByteSpan(), clock_.Now() + Seconds(1));
  }
  Answered Call(const std::string& text) { return clock_.Await(Start(text)); }

  kv::Loop loop_;
  SimClock clock_{loop_};
  SimNetwork network_{loop_, clock_, 5};
  std::vector<std::string> requests_;
};

TEST_F(SimNetworkTest, EchoesARequest) {
  const Answered answer = Call("hello");
  ASSERT_THAT(answer, IsOk());
  EXPECT_EQ(kv::AsText(answer.value().body.span()), "hello");
}

TEST_F(SimNetworkTest, KeepsTheOrderOfALinkUnlessToldToReorder) {
  std::vector<std::string> sent;
  std::vector<Task<Answered>> calls;
  for (int i = 0; i < 20; ++i) {
    sent.push_back(std::to_string(i));
    calls.push_back(Start(sent.back()));
  }
  clock_.RunUntilIdle();
  EXPECT_EQ(requests_, sent);
  for (Task<Answered>& call : calls) EXPECT_THAT(call.Take(), IsOk());

  network_.SetLinks({.reorder = 500'000});
  requests_.clear();
  calls.clear();
  for (const std::string& text : sent) calls.push_back(Start(text));
  clock_.RunUntilIdle();
  EXPECT_EQ(requests_.size(), sent.size());
  EXPECT_NE(requests_, sent);
  for (Task<Answered>& call : calls) EXPECT_THAT(call.Take(), IsOk());
}

TEST_F(SimNetworkTest, ACutInEitherDirectionEndsInTheDeadline) {
  network_.Cut(kServer, kClient);
  EXPECT_THAT(Call("one"), HasCode(Code::kDeadline));
  EXPECT_EQ(requests_.size(), 1u);  // It was heard, and the answer was not.
  network_.HealAll();
  network_.Cut(kClient, kServer);
  EXPECT_THAT(Call("two"), HasCode(Code::kDeadline));
  EXPECT_EQ(requests_.size(), 1u);
  network_.Heal(kClient, kServer);
  EXPECT_THAT(Call("three"), IsOk());
  network_.Isolate(kServer);
  EXPECT_THAT(Call("four"), HasCode(Code::kDeadline));
}

TEST_F(SimNetworkTest, RepeatsAndLosesByChance) {
  network_.SetLinks({.loss = 300'000, .repeat = 300'000});
  int answered = 0;
  for (int i = 0; i < 50; ++i) {
    if (Call("x").ok()) ++answered;
  }
  EXPECT_GT(answered, 10);
  EXPECT_LT(answered, 45);
  EXPECT_GT(static_cast<int>(requests_.size()), answered);
}

TEST_F(SimNetworkTest, ACrashedNodeRefusesAndItsLateAnswersAreNotSent) {
  Task<Answered> interrupted = Start("before");
  clock_.RunUntil([this] { return !requests_.empty(); });
  network_.Crash(kServer);
  EXPECT_THAT(Call("down"), HasCode(Code::kUnavailable));
  clock_.RunUntilIdle();
  EXPECT_THAT(interrupted.Take(), HasCode(Code::kDeadline));
  Serve();
  EXPECT_THAT(Call("after"), IsOk());
}

TEST_F(SimNetworkTest, ACrashedCallerIsToldAtOnce) {
  Task<Answered> call = Start("x");
  network_.Crash(kClient);
  loop_.RunReady();
  EXPECT_THAT(call.Take(), HasCode(Code::kUnavailable));
  clock_.RunUntilIdle();
}

}  // namespace
}  // namespace cairn::sim
