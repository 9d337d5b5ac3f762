// What every transport promises: the same calls on TCP, on both pollers, and on the simulated one.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kvstore/base/random.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/kvstore/io/network_rig.h"

namespace cairn::kv {
namespace {

using testing::HasCode;
using testing::IsOk;
using Outgoing = Network::Outgoing;
using Answered = Result<Network::Answer>;

constexpr NodeId kCaller{1};
constexpr NodeId kServer{2};

Bytes RandomBytes(uint64_t seed, size_t size) {
  Random random(seed);
  Bytes bytes(size);
  random.Fill(bytes.span());
  return bytes;
}

bool Same(ByteSpan a, ByteSpan b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
}

class NetworkConformance : public ::testing::TestWithParam<RigKind> {
 protected:
  void SetUp() override {
    rig_ = GetParam().make();
    if (rig_ == nullptr) GTEST_SKIP() << "no " << GetParam().name << " on this machine";
    release_ = std::make_unique<Event>(rig_->loop());
    Serve();
  }
  void TearDown() override {
    if (rig_ == nullptr) return;
    release_->Set();
    rig_->RunFor(Millis(1));
    rig_.reset();
  }
  void Serve() {
    rig_->node(kCaller);
    rig_->node(kServer).Serve([this](NodeId source, Bytes body, Bytes payload) {
      return Echo(source, std::move(body), std::move(payload));
    });
  }
  // What came goes back: checked ("ones"), later ("hold"), or `given_` in its place ("give").
  Task<Network::Reply> Echo(NodeId source, Bytes body, Bytes payload) {
    EXPECT_EQ(source, kCaller);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(payload.data()) % kSectorSize, 0u);
    const std::string verb(AsText(body.span()));
    heard_.push_back(verb);
    if (verb.starts_with("hold")) {
      Event& release = *release_;
      co_await release;
    }
    if (verb == "ones") {
      EXPECT_EQ(std::count(payload.data(), payload.data() + payload.size(), 1),
                static_cast<ptrdiff_t>(payload.size()));
    }
    if (verb.starts_with("give")) payload = Bytes::CopyOf(given_.span());
    co_return Network::Reply(std::move(body), std::move(payload));
  }

  Instant Soon() { return rig_->clock().Now() + Seconds(30); }
  static Outgoing Say(std::string_view text, std::vector<ByteSpan> payload = {}) {
    return Outgoing(Bytes::CopyOf(AsBytes(text)), std::move(payload));
  }
  Task<Answered> Start(Outgoing request, MutableByteSpan into, Instant deadline) {
    return rig_->node(kCaller).Call(kServer, std::move(request), into, deadline);
  }
  Task<Answered> Start(std::string_view text) { return Start(Say(text), {}, Soon()); }
  Answered Call(std::string_view text) { return rig_->Await(Start(text)); }

  std::unique_ptr<NetworkRig> rig_;
  std::unique_ptr<Event> release_;
  Bytes given_;
  std::vector<std::string> heard_;
};
INSTANTIATE_TEST_SUITE_P(Transports, NetworkConformance, ::testing::ValuesIn(Rigs()),
                         [](const auto& kind) { return kind.param.name; });

TEST_P(NetworkConformance, BodiesOfEverySizeComeBack) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{39}, size_t{40}, size_t{41}, size_t{4096},
                            size_t{65535}, size_t{65536}, size_t{65537}, kMessageBodySizeMax}) {
    const Bytes sent = RandomBytes(size + 1, size);
    const Answered answer =
        rig_->Await(Start(Outgoing(Bytes::CopyOf(sent.span())), {}, Soon()));
    ASSERT_THAT(answer, IsOk());
    EXPECT_TRUE(Same(answer.value().body.span(), sent.span())) << size;
    EXPECT_EQ(answer.value().payload_size, 0u);
  }
}

TEST_P(NetworkConformance, PayloadsOfEverySizeTravelBothWaysAndLandInPlace) {
  for (const size_t size : {size_t{1}, size_t{4095}, size_t{4096}, size_t{65536}, size_t{350'001},
                            size_t{5} << 20, size_t{kMessagePayloadSizeMax}}) {
    const Bytes sent = RandomBytes(size, size);
    Bytes into(size + 100);
    const uint8_t untouched = 0xa5;
    std::fill(into.data(), into.data() + into.size(), untouched);
    const size_t room = std::min<size_t>(into.size(), kMessagePayloadSizeMax);
    const std::vector<ByteSpan> pieces{sent.span().first(size / 3), ByteSpan(),
                                       sent.span().subspan(size / 3)};
    const Answered answer =
        rig_->Await(Start(Say("echo", pieces), into.span().first(room), Soon()));
    ASSERT_THAT(answer, IsOk());
    ASSERT_EQ(answer.value().payload_size, size);
    EXPECT_TRUE(Same(std::as_const(into).span().first(size), sent.span())) << size;
    EXPECT_EQ(std::count(into.data() + size, into.data() + into.size(), untouched), 100) << size;
  }
}

TEST_P(NetworkConformance, RefusesWhatIsTooLarge) {
  EXPECT_THAT(rig_->Await(Start(Outgoing(Bytes(kMessageBodySizeMax + 1)), {}, Soon())),
              HasCode(Code::kInvalid));
  const Bytes large(kMessagePayloadSizeMax + 1);
  EXPECT_THAT(rig_->Await(Start(Say("echo", {large.span()}), {}, Soon())),
              HasCode(Code::kInvalid));
  EXPECT_TRUE(heard_.empty());
}

TEST_P(NetworkConformance, AnAnswerLargerThanItsPlaceIsUnavailableAndTouchesNothing) {
  given_ = RandomBytes(1, 5000);
  Bytes into(4999);
  EXPECT_THAT(rig_->Await(Start(Say("give"), into.span(), Soon())), HasCode(Code::kUnavailable));
  EXPECT_TRUE(Same(std::as_const(into).span(), Bytes(4999).span()));
  EXPECT_THAT(Call("echo"), IsOk());
}

TEST_P(NetworkConformance, SmallCallsArriveInOrder) {
  ASSERT_THAT(Call("first"), IsOk());
  std::vector<std::string> sent{"first"};
  std::vector<Task<Answered>> calls;
  for (int i = 0; i < 200; ++i) {
    sent.push_back(std::to_string(i));
    calls.push_back(Start(sent.back()));
  }
  for (Task<Answered>& call : calls) EXPECT_THAT(rig_->Await(std::move(call)), IsOk());
  EXPECT_EQ(heard_, sent);
}

TEST_P(NetworkConformance, ManyCallsInFlightEachGetTheirOwnAnswer) {
  constexpr size_t kCalls = 1000;
  constexpr size_t kSize = 20'000;
  const Bytes sent = RandomBytes(7, kSize + kCalls);
  std::vector<Bytes> landings;
  std::vector<Task<Answered>> calls;
  for (size_t i = 0; i < kCalls; ++i) {
    landings.emplace_back(kSize);
    calls.push_back(Start(Say(std::to_string(i), {sent.span().subspan(i, kSize)}),
                          landings.back().span(), Soon()));
  }
  for (size_t i = 0; i < kCalls; ++i) {
    const Answered answer = rig_->Await(std::move(calls[i]));
    ASSERT_THAT(answer, IsOk());
    ASSERT_EQ(AsText(answer.value().body.span()), std::to_string(i));
    ASSERT_TRUE(Same(std::as_const(landings[i]).span(), sent.span().subspan(i, kSize))) << i;
  }
}

TEST_P(NetworkConformance, AnswersOvertakeEachOther) {
  Task<Answered> held = Start("hold");
  EXPECT_THAT(Call("echo"), IsOk());
  EXPECT_FALSE(held.done());
  release_->Set();
  EXPECT_THAT(rig_->Await(std::move(held)), IsOk());
}

TEST_P(NetworkConformance, AHandlerThatNeverAnswersEndsInTheDeadlineAndHarmsNobody) {
  const Instant deadline = rig_->clock().Now() + Millis(5);
  EXPECT_THAT(rig_->Await(Start(Say("hold"), {}, deadline)), HasCode(Code::kDeadline));
  EXPECT_GE(rig_->clock().Now(), deadline);
  release_->Set();
  EXPECT_THAT(Call("echo"), IsOk());
  const Task<Answered> past = Start(Say("echo"), {}, rig_->clock().Now());
  EXPECT_TRUE(past.done());
}

// The deadline may strike before, in, or after the landing: nothing is written once Call is over.
TEST_P(NetworkConformance, NothingIsWrittenAfterACallHasReturned) {
  given_ = RandomBytes(3, size_t{16} << 20);
  for (int64_t micros = 200; micros < 30'000; micros = micros * 3 / 2) {
    Bytes into(given_.size());
    const Answered answer = rig_->Await(
        Start(Say("give"), into.span(), rig_->clock().Now() + Micros(micros)));
    if (answer.ok()) {
      EXPECT_TRUE(Same(std::as_const(into).span(), given_.span()));
    }
    const uint8_t pattern = 0x5a;
    std::fill(into.data(), into.data() + into.size(), pattern);
    ASSERT_THAT(Call("echo"), IsOk());
    rig_->RunFor(Millis(5));
    ASSERT_EQ(std::count(into.data(), into.data() + into.size(), pattern),
              static_cast<ptrdiff_t>(into.size()));
  }
}

// The payload's memory is the caller's again: what it writes there then must not be sent.
TEST_P(NetworkConformance, NothingIsReadAfterACallHasReturned) {
  Bytes sent(size_t{16} << 20);
  for (int64_t micros = 200; micros < 30'000; micros = micros * 3 / 2) {
    std::fill(sent.data(), sent.data() + sent.size(), uint8_t{1});
    Bytes into(sent.size());
    const Answered answer =
        rig_->Await(Start(Say("ones", {std::as_const(sent).span()}), into.span(),
                          rig_->clock().Now() + Micros(micros)));
    if (answer.ok()) {
      EXPECT_TRUE(Same(std::as_const(into).span(), std::as_const(sent).span()));
    }
    std::fill(sent.data(), sent.data() + sent.size(), uint8_t{2});
    ASSERT_THAT(Call("echo"), IsOk());
  }
}

TEST_P(NetworkConformance, ADeadPeerEndsItsCallsAndIsFoundAgainWhenItIsBack) {
  const Bytes sent = RandomBytes(1, size_t{20} << 20);
  Bytes into(sent.size());
  std::vector<Task<Answered>> calls;
  const Instant deadline = rig_->clock().Now() + Seconds(3);
  calls.push_back(Start(Say("hold"), {}, deadline));
  calls.push_back(Start(Say("hold", {sent.span()}), into.span(), deadline));
  rig_->RunUntil([this] { return !heard_.empty(); });
  rig_->Kill(kServer);
  for (Task<Answered>& call : calls) {
    const Answered answer = rig_->Await(std::move(call));
    EXPECT_TRUE(answer.status().code() == Code::kUnavailable ||
                answer.status().code() == Code::kDeadline)
        << answer.status().ToString();
  }
  EXPECT_THAT(Call("nobody"), HasCode(Code::kUnavailable));
  heard_.clear();
  Serve();
  rig_->RunFor(Millis(100));  // Of the negative memory.
  EXPECT_THAT(Call("back"), IsOk());
  EXPECT_EQ(heard_, std::vector<std::string>{"back"});
}

TEST_P(NetworkConformance, APeerThatDiesInTheMiddleOfALandingLeavesTheMemoryAlone) {
  given_ = RandomBytes(3, size_t{16} << 20);
  for (int64_t micros = 100; micros < 30'000; micros *= 2) {
    Bytes into(given_.size());
    Task<Answered> call = Start(Say("give"), into.span(), rig_->clock().Now() + Seconds(2));
    rig_->RunFor(Micros(micros));
    rig_->Kill(kServer);
    const Answered answer = rig_->Await(std::move(call));
    if (answer.ok()) {
      EXPECT_TRUE(Same(std::as_const(into).span(), given_.span()));
    }
    std::fill(into.data(), into.data() + into.size(), uint8_t{0x5a});
    Serve();
    rig_->RunFor(Millis(60));
    ASSERT_THAT(Call("echo"), IsOk());
    EXPECT_EQ(std::count(into.data(), into.data() + into.size(), 0x5a),
              static_cast<ptrdiff_t>(into.size()));
  }
}

TEST_P(NetworkConformance, AnAbandonedPeerEndsItsCallsAndIsCalledAnew) {
  Bytes into(1 << 20);
  std::vector<Task<Answered>> calls;
  calls.push_back(Start("hold"));
  calls.push_back(Start(Say("hold with payload", {}), into.span(), Soon()));
  rig_->RunUntil([&] { return heard_.size() == 2; });
  rig_->node(kCaller).Abandon(kServer);
  Task<Answered> at_once = Start("at once");  // Over another connection than those that end.
  const Instant began = rig_->clock().Now();
  for (Task<Answered>& call : calls) {
    EXPECT_THAT(rig_->Await(std::move(call)), HasCode(Code::kUnavailable));
  }
  EXPECT_LT(rig_->clock().Now(), began + Seconds(20));  // Not at their deadline.
  EXPECT_THAT(rig_->Await(std::move(at_once)), IsOk());
  rig_->node(kCaller).Abandon(NodeId{77});  // Nobody.
  EXPECT_THAT(Call("anew"), IsOk());
}

TEST_P(NetworkConformance, ANodeThatNobodyKnowsIsUnavailable) {
  EXPECT_THAT(rig_->Await(rig_->node(kCaller).Call(NodeId{77}, Say("x"), {}, Soon())),
              HasCode(Code::kUnavailable));
}

}  // namespace
}  // namespace cairn::kv
