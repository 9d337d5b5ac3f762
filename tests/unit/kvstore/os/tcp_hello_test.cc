// The hello between nodes: versions that overlap, and proofs that serve once, for one side.
#include "kvstore/os/tcp_hello.h"

#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace cairn::kv {
namespace {

using testing::HasCode;
using testing::IsOk;

HelloOffer SomeOffer() {
  HelloOffer offer;
  offer.versions = {.min = 3, .max = 5};
  offer.role = ConnectionRole::kData;
  offer.caller = NodeId{7};
  offer.callee = NodeId{9};
  offer.cluster = Sha256(AsBytes("cluster"));
  offer.nonce.fill(0x11);
  return offer;
}

HelloWelcome SomeWelcome() {
  HelloWelcome welcome;
  welcome.version = 4;
  welcome.callee = NodeId{9};
  welcome.nonce.fill(0x22);
  return welcome;
}

TEST(TcpHello, RoundTrips) {
  const Result<HelloOffer> offer = ParseOffer(EncodeOffer(SomeOffer()));
  ASSERT_THAT(offer, IsOk());
  EXPECT_EQ(EncodeOffer(offer.value()), EncodeOffer(SomeOffer()));
  EXPECT_EQ(offer.value().caller, NodeId{7});
  EXPECT_EQ(offer.value().callee, NodeId{9});
  EXPECT_EQ(offer.value().role, ConnectionRole::kData);
  const Result<HelloWelcome> welcome = ParseWelcome(EncodeWelcome(SomeWelcome()));
  ASSERT_THAT(welcome, IsOk());
  EXPECT_EQ(EncodeWelcome(welcome.value()), EncodeWelcome(SomeWelcome()));
  EXPECT_EQ(welcome.value().version, 4u);
}

TEST(TcpHello, RefusesWhatNoNodeWouldSend) {
  for (const size_t at : {0u, 3u, 8u, 9u, 11u}) {
    OfferBytes bytes = EncodeOffer(SomeOffer());
    bytes[at] ^= 0x80;
    EXPECT_THAT(ParseOffer(bytes), HasCode(Code::kInvalid)) << at;
  }
  HelloOffer empty = SomeOffer();
  empty.versions = {.min = 6, .max = 5};
  EXPECT_THAT(ParseOffer(EncodeOffer(empty)), HasCode(Code::kInvalid));
  for (const size_t at : {0u, 3u, 4u, 5u}) {
    WelcomeBytes bytes = EncodeWelcome(SomeWelcome());
    bytes[at] ^= 0x80;
    EXPECT_THAT(ParseWelcome(bytes), HasCode(Code::kInvalid)) << at;
  }
}

TEST(TcpHello, TheHighestCommonVersionIsTaken) {
  EXPECT_EQ(CommonVersion({.min = 1, .max = 3}, {.min = 2, .max = 4}), uint16_t{3});
  EXPECT_EQ(CommonVersion({.min = 2, .max = 2}, {.min = 2, .max = 2}), uint16_t{2});
  EXPECT_EQ(CommonVersion({.min = 1, .max = 2}, {.min = 3, .max = 4}), std::nullopt);
}

TEST(TcpHello, AProofIsOfOneSideOneSecretAndAllThatWasSaid) {
  const OfferBytes offer = EncodeOffer(SomeOffer());
  const WelcomeBytes welcome = EncodeWelcome(SomeWelcome());
  const Sha256Digest callee = CalleeProof("secret", offer, welcome);
  EXPECT_NE(callee, CallerProof("secret", offer, welcome));
  EXPECT_NE(callee, CalleeProof("Secret", offer, welcome));
  for (size_t at = 0; at < kOfferSize; ++at) {
    OfferBytes other = offer;
    other[at] ^= 1;
    EXPECT_NE(callee, CalleeProof("secret", other, welcome)) << at;
  }
  for (size_t at = 0; at < kWelcomeSize - sizeof(Sha256Digest); ++at) {
    WelcomeBytes other = welcome;
    other[at] ^= 1;
    EXPECT_NE(callee, CalleeProof("secret", offer, other)) << at;
  }
}

}  // namespace
}  // namespace cairn::kv
