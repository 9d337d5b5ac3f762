// Messages to homes: what is sent arrives, and what is cut, longer or wrong is refused.
#include "kvstore/home/messages.h"

#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace cairn::kv::home {
namespace {

using ::cairn::testing::HasCode;
using ::cairn::testing::IsOk;

IndexedStripe SomeStripe() {
  IndexedStripe stripe;
  Manifest& manifest = stripe.manifest;
  manifest.stripe = StripeId{{1, 2}};
  manifest.space = NamespaceId{{3, 4}};
  manifest.run = RunId{{5, 6}};
  manifest.data_shards = 1;
  manifest.parity_shards = 1;
  manifest.shard_size = 4096;
  manifest.retention = {.kind = RetentionKind::kFixed, .ttl_seconds = 7, .expires_at = {8}};
  manifest.targets = {{9}, {10}};
  manifest.blocks = {{.id = BlockId{{11, 12}}, .offset = 0, .size = 13, .checksum = 14}};
  stripe.expires_at = {15};
  stripe.position = 16;
  stripe.keep_until = 17;
  stripe.last_access = 18;
  stripe.hit = true;
  return stripe;
}

template <typename Message>
Bytes RequestOf(Verb verb, const Message& message) {
  return EncodeRequest({.verb = verb, .epoch = 77}, message);
}

TEST(HomeMessages, AStripeArrivesWhole) {
  const FileRequest sent{.stripe = SomeStripe(), .durability = Durability::kPowerCut};
  const Bytes bytes = RequestOf(Verb::kPublish, sent);
  const auto head = ParseHead(bytes.span());
  EXPECT_EQ(head.value().verb, Verb::kPublish);
  EXPECT_EQ(head.value().epoch, 77u);
  const auto got = ParseRequest<FileRequest>(bytes.span());
  ASSERT_THAT(got.status(), IsOk());
  EXPECT_EQ(got.value().stripe.manifest, sent.stripe.manifest);
  EXPECT_EQ(got.value().stripe.expires_at, sent.stripe.expires_at);
  EXPECT_EQ(got.value().stripe.position, 16u);
  EXPECT_EQ(got.value().stripe.keep_until, 17u);
  EXPECT_EQ(got.value().stripe.last_access, 18u);
  EXPECT_TRUE(got.value().stripe.hit);
  EXPECT_EQ(got.value().durability, Durability::kPowerCut);
}

TEST(HomeMessages, NothingCutOrLongerIsTaken) {
  const Bytes bytes = RequestOf(Verb::kPublish, FileRequest{.stripe = SomeStripe()});
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THAT(ParseRequest<FileRequest>(bytes.span().first(size)).status(),
                HasCode(Code::kInvalid))
        << size;
  }
  std::vector<uint8_t> longer(bytes.data(), bytes.data() + bytes.size());
  longer.push_back(0);
  EXPECT_THAT(ParseRequest<FileRequest>(longer).status(), HasCode(Code::kInvalid));
}

TEST(HomeMessages, EveryFlippedByteIsRefusedOrHarmless) {
  const Bytes bytes = RequestOf(Verb::kLoad, LoadRequest{.key = {}, .wanted = {BlockId{{1, 2}}}});
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::vector<uint8_t> flipped(bytes.data(), bytes.data() + bytes.size());
    flipped[at] ^= 0xff;
    const auto parsed = ParseRequest<LoadRequest>(flipped);
    if (!parsed.ok()) continue;
    EXPECT_LE(parsed.value().wanted.size(), kRunBlocksMax);
  }
}

TEST(HomeMessages, AnAnswerCarriesItsEpochAlsoWhenItRefuses) {
  uint64_t epoch = 0;
  const Bytes refused = EncodeAnswer(5, Result<Empty>(Status(Code::kConflict, "held")));
  EXPECT_THAT(ParseAnswer<Empty>(refused.span(), epoch).status(), HasCode(Code::kConflict));
  EXPECT_EQ(epoch, 5u);
  LeaseGrant grant{.lease = {1}, .left = Seconds(2), .gone = {StripeId{{3, 4}}}};
  const Bytes granted = EncodeAnswer(6, Result<GrantAnswer>(GrantAnswer{grant}));
  const auto got = ParseAnswer<GrantAnswer>(granted.span(), epoch);
  ASSERT_THAT(got.status(), IsOk());
  EXPECT_EQ(got.value().grant.lease, grant.lease);
  EXPECT_EQ(got.value().grant.left, grant.left);
  EXPECT_EQ(got.value().grant.gone, grant.gone);
  EXPECT_EQ(epoch, 6u);
  EXPECT_THAT(ParseAnswer<GrantAnswer>(refused.span().first(3), epoch).status(),
              HasCode(Code::kUnavailable));
}

TEST(HomeMessages, ReportsAndReasonsArrive) {
  uint64_t epoch = 0;
  StripeReport report{.kind = StripeReport::Kind::kFiled, .held = true};
  report.state.last_access = 9;
  report.state.hit = true;
  const Bytes states = EncodeAnswer(1, Result<StatesAnswer>(StatesAnswer{{report, {}}}));
  const auto got = ParseAnswer<StatesAnswer>(states.span(), epoch);
  ASSERT_THAT(got.status(), IsOk());
  EXPECT_TRUE(got.value().reports[0].held);
  EXPECT_EQ(got.value().reports[0].state, report.state);
  EXPECT_EQ(got.value().reports[1].kind, StripeReport::Kind::kUnknown);
  LoadAnswer run{.complete = true, .stripes = {SomeStripe()}, .reasons = {MissReason::kEvicted}};
  const Bytes loaded = EncodeAnswer(1, Result<LoadAnswer>(std::move(run)));
  const auto back = ParseAnswer<LoadAnswer>(loaded.span(), epoch);
  ASSERT_THAT(back.status(), IsOk());
  EXPECT_TRUE(back.value().complete);
  EXPECT_EQ(back.value().stripes.size(), 1u);
  EXPECT_EQ(back.value().reasons[0], MissReason::kEvicted);
}

}  // namespace
}  // namespace cairn::kv::home
