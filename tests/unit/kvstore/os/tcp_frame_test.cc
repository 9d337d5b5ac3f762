// The frame header: what was encoded parses, and nothing else does.
#include "kvstore/os/tcp_frame.h"

#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace cairn::kv {
namespace {

using testing::HasCode;
using testing::IsOk;

FrameHeaderBytes Good() {
  FrameHeader header;
  header.kind = FrameKind::kAnswer;
  header.source = NodeId{7};
  header.payload_size = 1234;
  header.request_id = 0x0102030405060708;
  return EncodeFrameHeader(header);
}

TEST(TcpFrame, RoundTripsOverPinnedBytes) {
  const FrameHeaderBytes bytes = Good();
  const FrameHeaderBytes pinned = {'C', 'R', 'N', '1', 2, 0, 0, 0, 7, 0, 0, 0,
                                   0xd2, 0x04, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1};
  EXPECT_EQ(bytes, pinned);
  const Result<FrameHeader> header = ParseFrameHeader(bytes);
  ASSERT_THAT(header, IsOk());
  EXPECT_EQ(header.value().kind, FrameKind::kAnswer);
  EXPECT_EQ(header.value().source, NodeId{7});
  EXPECT_EQ(header.value().payload_size, 1234u);
  EXPECT_EQ(header.value().request_id, 0x0102030405060708u);
}

TEST(TcpFrame, RefusesAnyOtherValueOfTheFixedBytes) {
  for (const size_t at : {0u, 1u, 2u, 3u, 5u, 6u, 7u}) {
    for (uint32_t change = 1; change < 256; ++change) {
      FrameHeaderBytes bytes = Good();
      bytes[at] ^= static_cast<uint8_t>(change);
      EXPECT_THAT(ParseFrameHeader(bytes), HasCode(Code::kInvalid)) << at;
    }
  }
  for (uint32_t kind = 0; kind < 256; ++kind) {
    FrameHeaderBytes bytes = Good();
    bytes[4] = static_cast<uint8_t>(kind);
    EXPECT_EQ(ParseFrameHeader(bytes).ok(), kind == 1 || kind == 2) << kind;
  }
}

TEST(TcpFrame, RefusesAPayloadOverTheLimit) {
  FrameHeader header;
  header.payload_size = static_cast<uint32_t>(kMessageSizeMax);
  EXPECT_THAT(ParseFrameHeader(EncodeFrameHeader(header)), IsOk());
  header.payload_size += 1;
  EXPECT_THAT(ParseFrameHeader(EncodeFrameHeader(header)), HasCode(Code::kInvalid));
}

}  // namespace
}  // namespace cairn::kv
