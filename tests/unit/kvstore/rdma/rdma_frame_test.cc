// What is encoded is parsed again, and nothing else is.
#include "kvstore/rdma/rdma_frame.h"

#include <gtest/gtest.h>

#include <array>

#include "kvstore/base/random.h"
#include "tests/support/status_matchers.h"

namespace cairn::kv {
namespace {

using testing::HasCode;
using testing::IsOk;

RdmaFrame ARequest() {
  RdmaFrame frame;
  frame.request_id = 0x1122334455667788;
  frame.payload = {{.address = 0x7f0000001000, .size = 5000, .key = 17},
                   {.address = 0x7f0000009001, .size = 1, .key = 18}};
  frame.payload_size = 5001;
  frame.room = {.address = 0x7f0000100000, .size = 70'000, .key = 19};
  frame.body = Bytes::CopyOf(AsBytes("what is asked"));
  return frame;
}

RdmaFrame OfKind(RdmaFrameKind kind) {
  RdmaFrame frame;
  frame.kind = kind;
  frame.request_id = 7;
  return frame;
}

void ExpectSame(const RdmaFrame& a, const RdmaFrame& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.request_id, b.request_id);
  EXPECT_EQ(a.payload_size, b.payload_size);
  EXPECT_EQ(AsText(a.body.span()), AsText(b.body.span()));
  EXPECT_EQ(a.room.address, b.room.address);
  EXPECT_EQ(a.room.size, b.room.size);
  EXPECT_EQ(a.room.key, b.room.key);
  ASSERT_EQ(a.payload.size(), b.payload.size());
  for (size_t i = 0; i < a.payload.size(); ++i) {
    EXPECT_EQ(a.payload[i].address, b.payload[i].address);
    EXPECT_EQ(a.payload[i].size, b.payload[i].size);
    EXPECT_EQ(a.payload[i].key, b.payload[i].key);
  }
}

TEST(RdmaFrame, EveryKindIsParsedAsItWasEncoded) {
  const RdmaFrame request = ARequest();
  RdmaFrame answer = OfKind(RdmaFrameKind::kAnswer);
  answer.payload_size = 123;
  answer.body = Bytes::CopyOf(AsBytes("what is said"));
  const RdmaFrame refusal = OfKind(RdmaFrameKind::kRefusal);
  const RdmaFrame cancel = OfKind(RdmaFrameKind::kCancel);
  const std::array<const RdmaFrame*, 4> frames{&request, &answer, &refusal, &cancel};
  for (const RdmaFrame* const frame : frames) {
    const Result<RdmaFrame> parsed = ParseRdmaFrame(EncodeRdmaFrame(*frame));
    ASSERT_THAT(parsed, IsOk());
    ExpectSame(parsed.value(), *frame);
  }
}

TEST(RdmaFrame, ADamagedByteOrAnotherSizeIsRefused) {
  const std::vector<uint8_t> good = EncodeRdmaFrame(ARequest());
  for (size_t i = 0; i < good.size(); ++i) {
    std::vector<uint8_t> bad = good;
    bad[i] ^= 0x10;
    EXPECT_THAT(ParseRdmaFrame(bad), HasCode(Code::kInvalid)) << i;
    EXPECT_THAT(ParseRdmaFrame(ByteSpan(good).first(i)), HasCode(Code::kInvalid)) << i;
  }
  std::vector<uint8_t> longer = good;
  longer.push_back(0);
  EXPECT_THAT(ParseRdmaFrame(longer), HasCode(Code::kInvalid));
}

TEST(RdmaFrame, WhatMakesNoSenseIsRefusedThoughItsChecksumHolds) {
  const auto refuses = [](const RdmaFrame& frame) {
    EXPECT_THAT(ParseRdmaFrame(EncodeRdmaFrame(frame)), HasCode(Code::kInvalid));
  };
  RdmaFrame sum = ARequest();
  sum.payload_size = 5002;
  refuses(sum);
  RdmaFrame empty = ARequest();
  empty.payload.push_back({});
  refuses(empty);
  RdmaFrame room = ARequest();
  room.room.size = kMessagePayloadSizeMax + 1;
  refuses(room);
  RdmaFrame asking_answer = ARequest();
  asking_answer.kind = RdmaFrameKind::kAnswer;
  refuses(asking_answer);
  RdmaFrame loud_refusal = OfKind(RdmaFrameKind::kRefusal);
  loud_refusal.body = Bytes(1);
  refuses(loud_refusal);
  RdmaFrame many = ARequest();
  many.payload.assign(kRemotePiecesMax + 1, RemotePiece{.address = 1, .size = 1, .key = 1});
  many.payload_size = kRemotePiecesMax + 1;
  refuses(many);
}

TEST(RdmaFrame, NoiseIsRefused) {
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    std::vector<uint8_t> noise = EncodeRdmaFrame(ARequest());
    const size_t at = random.Below(noise.size() - 8);
    random.Fill(MutableByteSpan(noise).subspan(at));
    EXPECT_THAT(ParseRdmaFrame(noise), HasCode(Code::kInvalid));
  }
}

}  // namespace
}  // namespace cairn::kv
