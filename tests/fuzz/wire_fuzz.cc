// Feeds what a socket may bring: headers between nodes, frames and bodies of client and store.
//
// What parses as a header must encode to the same bytes. The checksum of a frame, which no fuzzer
// guesses, is made anew, unless the first byte says otherwise.
#include <cstdint>
#include <cstring>

#include "kvstore/base/check.h"
#include "kvstore/os/tcp_frame.h"
#include "kvstore/wire/frame.h"
#include "kvstore/wire/messages.h"

namespace cairn::kv {
namespace {

void TryNodeHeader(ByteSpan input) {
  FrameHeaderBytes bytes{};
  std::memcpy(bytes.data(), input.data(), std::min(input.size(), bytes.size()));
  const auto header = ParseFrameHeader(bytes);
  if (!header.ok() || header.value().body_size > 4096) return;
  const std::vector<uint8_t> body(header.value().body_size);
  const std::vector<uint8_t> frame = EncodeFrame(header.value(), body);
  constexpr size_t kWithoutChecksum = kFrameHeaderSize - sizeof(uint64_t);
  KV_CHECK(std::memcmp(frame.data(), bytes.data(), kWithoutChecksum) == 0);
}

void TryFrame(ByteSpan input, bool seal) {
  wire::FrameHeaderBytes bytes{};
  std::memcpy(bytes.data(), input.data(), std::min(input.size(), bytes.size()));
  const ByteSpan body = input.size() > bytes.size() ? input.subspan(bytes.size()) : ByteSpan();
  auto header = wire::ParseFrameHeader(bytes);
  if (!header.ok()) return;
  if (!seal) {
    (void)wire::BodyFits(bytes, body);
    return;
  }
  const std::vector<uint8_t> frame = wire::EncodeFrame(header.value(), body);
  KV_CHECK(frame.size() == bytes.size() + body.size());
  wire::FrameHeaderBytes again{};
  std::memcpy(again.data(), frame.data(), again.size());
  const auto parsed = wire::ParseFrameHeader(again);
  KV_CHECK(parsed.ok() && parsed.value().body_size == body.size());
  KV_CHECK(wire::BodyFits(again, body));
}

void TryBody(ByteSpan input) {
  if (input.size() < 2) return;
  const auto verb = static_cast<wire::Verb>(input[0]);
  if (!wire::IsKnown(verb)) return;
  const auto direction =
      (input[1] & 1) == 0 ? wire::Direction::kRequest : wire::Direction::kAnswer;
  (void)wire::ParseAny(verb, direction, input.subspan(2));
}

}  // namespace
}  // namespace cairn::kv

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const cairn::kv::ByteSpan rest(data + 1, size - 1);
  if (data[0] % 4 == 0) cairn::kv::TryNodeHeader(rest);
  if (data[0] % 4 == 1) cairn::kv::TryFrame(rest, (data[0] & 0x80) == 0);
  if (data[0] % 4 >= 2) cairn::kv::TryBody(rest);
  return 0;
}
