// Fixed offsets, little-endian.
#include "kvstore/os/tcp_frame.h"

#include <bit>
#include <cstring>

namespace cairn::kv {

static_assert(std::endian::native == std::endian::little);
static_assert(kMessageSizeMax <= UINT32_MAX);

namespace {

template <typename T>
T Load(const uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

}  // namespace

FrameHeaderBytes EncodeFrameHeader(const FrameHeader& header) {
  FrameHeaderBytes bytes{};
  std::memcpy(&bytes[0], &kFrameMagic, 4);
  bytes[4] = static_cast<uint8_t>(header.kind);
  std::memcpy(&bytes[8], &header.source.value, 4);
  std::memcpy(&bytes[12], &header.payload_size, 4);
  std::memcpy(&bytes[16], &header.request_id, 8);
  return bytes;
}

Result<FrameHeader> ParseFrameHeader(std::span<const uint8_t, kFrameHeaderSize> bytes) {
  if (Load<uint32_t>(&bytes[0]) != kFrameMagic) return Status(Code::kInvalid, "wrong magic");
  const uint8_t kind = bytes[4];
  if (kind < 1 || kind > 3) return Status(Code::kInvalid, "unknown kind of frame");
  if (bytes[5] != 0 || bytes[6] != 0 || bytes[7] != 0) {
    return Status(Code::kInvalid, "reserved bytes are set");
  }
  FrameHeader header;
  header.kind = static_cast<FrameKind>(kind);
  header.source.value = Load<uint32_t>(&bytes[8]);
  header.payload_size = Load<uint32_t>(&bytes[12]);
  header.request_id = Load<uint64_t>(&bytes[16]);
  if (header.payload_size > kMessageSizeMax) return Status(Code::kInvalid, "payload too large");
  if (header.kind == FrameKind::kRefusal && header.payload_size != 0) {
    return Status(Code::kInvalid, "a refusal with a payload");
  }
  return header;
}

}  // namespace cairn::kv
