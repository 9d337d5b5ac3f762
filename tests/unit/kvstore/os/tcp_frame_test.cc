// The frame header: what was encoded parses, and nothing else does.
#include "kvstore/os/tcp_frame.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/status_matchers.h"

namespace cairn::kv {
namespace {

using testing::HasCode;
using testing::IsOk;

std::vector<uint8_t> Frame(FrameKind kind = FrameKind::kRequest) {
  const FrameHeader header{.kind = kind,
                           .payload_size = 1234,
                           .room = kind == FrameKind::kRequest ? 77u : 0u,
                           .request_id = 0x0102030405060708};
  return EncodeFrame(header, AsBytes("body"));
}

FrameHeaderBytes HeaderOf(const std::vector<uint8_t>& frame) {
  FrameHeaderBytes bytes{};
  std::copy_n(frame.begin(), bytes.size(), bytes.begin());
  return bytes;
}

TEST(TcpFrame, RoundTripsOverPinnedBytes) {
  const std::vector<uint8_t> frame = Frame();
  const std::vector<uint8_t> pinned = {'C', 'R', 'N', '2', 1, 0, 0, 0, 4, 0, 0, 0, 0xd2, 0x04, 0, 0,
                                       77, 0, 0, 0, 0, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1};
  EXPECT_TRUE(std::equal(pinned.begin(), pinned.end(), frame.begin()));
  const Result<FrameHeader> header = ParseFrameHeader(HeaderOf(frame));
  ASSERT_THAT(header, IsOk());
  EXPECT_EQ(header.value().kind, FrameKind::kRequest);
  EXPECT_EQ(header.value().body_size, 4u);
  EXPECT_EQ(header.value().payload_size, 1234u);
  EXPECT_EQ(header.value().room, 77u);
  EXPECT_EQ(header.value().request_id, 0x0102030405060708u);
  EXPECT_TRUE(BodyFits(HeaderOf(frame), AsBytes("body")));
}

TEST(TcpFrame, RefusesAnyOtherValueOfTheFixedBytes) {
  for (const size_t at : {0u, 1u, 2u, 3u, 5u, 6u, 7u, 20u, 21u, 22u, 23u}) {
    for (uint32_t change = 1; change < 256; ++change) {
      FrameHeaderBytes bytes = HeaderOf(Frame());
      bytes[at] ^= static_cast<uint8_t>(change);
      EXPECT_THAT(ParseFrameHeader(bytes), HasCode(Code::kInvalid)) << at;
    }
  }
  for (uint32_t kind = 0; kind < 256; ++kind) {
    FrameHeaderBytes bytes = HeaderOf(Frame(FrameKind::kAnswer));
    bytes[4] = static_cast<uint8_t>(kind);
    EXPECT_EQ(ParseFrameHeader(bytes).ok(), kind == 1 || kind == 2) << kind;
  }
}

TEST(TcpFrame, TheChecksumCoversHeaderAndBody) {
  const std::vector<uint8_t> frame = Frame();
  for (size_t bit = 0; bit < frame.size() * 8; ++bit) {
    std::vector<uint8_t> damaged = frame;
    damaged[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
    EXPECT_FALSE(BodyFits(HeaderOf(damaged), ByteSpan(damaged).subspan(kFrameHeaderSize))) << bit;
  }
}

TEST(TcpFrame, RefusesSizesOverTheLimitsAndAnswersThatAsk) {
  FrameHeader header{.payload_size = static_cast<uint32_t>(kMessagePayloadSizeMax),
                     .room = static_cast<uint32_t>(kMessagePayloadSizeMax)};
  const auto parsed = [&header] { return ParseFrameHeader(HeaderOf(EncodeFrame(header, {}))); };
  EXPECT_THAT(parsed(), IsOk());
  header.payload_size += 1;
  EXPECT_THAT(parsed(), HasCode(Code::kInvalid));
  header.payload_size = 0;
  header.room += 1;
  EXPECT_THAT(parsed(), HasCode(Code::kInvalid));
  header.room = 1;
  header.kind = FrameKind::kAnswer;
  EXPECT_THAT(parsed(), HasCode(Code::kInvalid));
}

}  // namespace
}  // namespace cairn::kv
