// Frames: what is sent is what is read, and nothing else passes for it.
#include "kvstore/wire/frame.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/status_matchers.h"

namespace cairn::kv::wire {
namespace {

using cairn::testing::HasCode;
using cairn::testing::IsOk;

using HeaderSpan = std::span<const uint8_t, kFrameHeaderSize>;

FrameHeader SomeHeader() {
  return {.verb = Verb::kGet,
          .direction = Direction::kAnswer,
          .body_size = 0,
          .payload_size = 4 * kMiB,
          .request_id = 0x0123456789abcdef,
          .budget_nanos = 1'000'000'007};
}

TEST(Frame, ReadsBackAsItWasSent) {
  const std::vector<uint8_t> body{1, 2, 3, 4, 5};
  const std::vector<uint8_t> frame = EncodeFrame(SomeHeader(), body);
  ASSERT_EQ(frame.size(), kFrameHeaderSize + body.size());
  const HeaderSpan head(frame.data(), kFrameHeaderSize);
  const Result<FrameHeader> header = ParseFrameHeader(head);
  ASSERT_THAT(header, IsOk());
  EXPECT_EQ(header.value().verb, Verb::kGet);
  EXPECT_EQ(header.value().direction, Direction::kAnswer);
  EXPECT_EQ(header.value().body_size, body.size());
  EXPECT_EQ(header.value().payload_size, 4 * kMiB);
  EXPECT_EQ(header.value().request_id, 0x0123456789abcdefu);
  EXPECT_EQ(header.value().budget_nanos, 1'000'000'007);
  EXPECT_TRUE(BodyFits(head, body));
}

TEST(Frame, NoChangedByteOfHeaderOrBodyPasses) {
  const std::vector<uint8_t> body{9, 8, 7, 6};
  const std::vector<uint8_t> sent = EncodeFrame(SomeHeader(), body);
  for (size_t at = 0; at < sent.size(); ++at) {
    std::vector<uint8_t> frame = sent;
    frame[at] ^= 0x10;
    const HeaderSpan head(frame.data(), kFrameHeaderSize);
    const ByteSpan rest = ByteSpan(frame).subspan(kFrameHeaderSize);
    EXPECT_FALSE(ParseFrameHeader(head).ok() && BodyFits(head, rest)) << at;
  }
}

TEST(Frame, RefusesWhatIsBeyondTheLimits) {
  const auto with = [](auto change) {
    FrameHeader header = SomeHeader();
    change(header);
    std::vector<uint8_t> frame = EncodeFrame(header, {});
    return ParseFrameHeader(HeaderSpan(frame.data(), kFrameHeaderSize));
  };
  EXPECT_THAT(with([](FrameHeader&) {}), IsOk());
  EXPECT_THAT(with([](FrameHeader& h) { h.payload_size = kPayloadSizeMax + 1; }),
              HasCode(Code::kInvalid));
  EXPECT_THAT(with([](FrameHeader& h) { h.budget_nanos = -1; }), HasCode(Code::kInvalid));
  EXPECT_THAT(with([](FrameHeader& h) { h.verb = static_cast<Verb>(200); }),
              HasCode(Code::kInvalid));
  EXPECT_THAT(with([](FrameHeader& h) { h.direction = static_cast<Direction>(0); }),
              HasCode(Code::kInvalid));
  std::vector<uint8_t> frame = EncodeFrame(SomeHeader(), {});
  frame[11] = 0xff;  // The body's size.
  EXPECT_THAT(ParseFrameHeader(HeaderSpan(frame.data(), kFrameHeaderSize)),
              HasCode(Code::kInvalid));
}

TEST(Frame, ExactlyTheVerbsOfTheListAreKnown) {
  size_t known = 0;
  for (unsigned value = 0; value < 256; ++value) {
    if (IsKnown(static_cast<Verb>(value))) ++known;
  }
  EXPECT_EQ(known, 30u);
}

}  // namespace
}  // namespace cairn::kv::wire
