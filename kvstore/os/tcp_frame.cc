// Fixed offsets, little-endian.
#include "kvstore/os/tcp_frame.h"

#include <cstring>

#include "kvstore/base/checksum.h"
#include "kvstore/os/fixed_fields.h"

namespace cairn::kv {

static_assert(kMessageBodySizeMax <= UINT32_MAX && kMessagePayloadSizeMax <= UINT32_MAX);

namespace {

constexpr size_t kChecksumAt = kFrameHeaderSize - sizeof(uint64_t);

uint64_t ChecksumOf(ByteSpan header, ByteSpan body) {
  ChecksumStream stream;
  stream.Add(header.first(kChecksumAt));
  stream.Add(body);
  return stream.Digest();
}

}  // namespace

std::vector<uint8_t> EncodeFrame(FrameHeader header, ByteSpan body) {
  std::vector<uint8_t> frame(kFrameHeaderSize + body.size());
  const auto body_size = static_cast<uint32_t>(body.size());
  std::memcpy(&frame[0], &kFrameMagic, 4);
  frame[4] = static_cast<uint8_t>(header.kind);
  std::memcpy(&frame[8], &body_size, 4);
  std::memcpy(&frame[12], &header.payload_size, 4);
  std::memcpy(&frame[16], &header.room, 4);
  std::memcpy(&frame[24], &header.request_id, 8);
  const uint64_t checksum = ChecksumOf(ByteSpan(frame).first(kFrameHeaderSize), body);
  std::memcpy(&frame[kChecksumAt], &checksum, 8);
  if (!body.empty()) std::memcpy(&frame[kFrameHeaderSize], body.data(), body.size());
  return frame;
}

Result<FrameHeader> ParseFrameHeader(std::span<const uint8_t, kFrameHeaderSize> bytes) {
  if (LoadField<uint32_t>(&bytes[0]) != kFrameMagic) return Status(Code::kInvalid, "wrong magic");
  const uint8_t kind = bytes[4];
  if (kind < 1 || kind > 3) return Status(Code::kInvalid, "unknown kind of frame");
  if ((LoadField<uint32_t>(&bytes[4]) >> 8) != 0 || LoadField<uint32_t>(&bytes[20]) != 0) {
    return Status(Code::kInvalid, "reserved bytes are set");
  }
  FrameHeader header;
  header.kind = static_cast<FrameKind>(kind);
  header.body_size = LoadField<uint32_t>(&bytes[8]);
  header.payload_size = LoadField<uint32_t>(&bytes[12]);
  header.room = LoadField<uint32_t>(&bytes[16]);
  header.request_id = LoadField<uint64_t>(&bytes[24]);
  if (header.body_size > kMessageBodySizeMax || header.payload_size > kMessagePayloadSizeMax ||
      header.room > kMessagePayloadSizeMax) {
    return Status(Code::kInvalid, "body or payload too large");
  }
  if (header.kind != FrameKind::kRequest && header.room != 0) {
    return Status(Code::kInvalid, "an answer that asks for one");
  }
  if (header.kind == FrameKind::kRefusal && (header.body_size | header.payload_size) != 0) {
    return Status(Code::kInvalid, "a refusal with a body or a payload");
  }
  return header;
}

bool BodyFits(std::span<const uint8_t, kFrameHeaderSize> header, ByteSpan body) {
  return ChecksumOf(header, body) == LoadField<uint64_t>(&header[kChecksumAt]);
}

}  // namespace cairn::kv
