// Fixed offsets, little-endian.
#include "kvstore/rdma/rdma_frame.h"

#include <cstring>

#include "kvstore/base/checksum.h"
#include "kvstore/os/fixed_fields.h"

namespace cairn::kv {

namespace {

constexpr uint32_t kMagic = 0x31445243;  // "CRD1"
constexpr size_t kChecksumAt = kRdmaFrameHeaderSize - sizeof(uint64_t);

uint64_t ChecksumOf(ByteSpan frame) {
  ChecksumStream stream;
  stream.Add(frame.first(kChecksumAt));
  stream.Add(frame.subspan(kRdmaFrameHeaderSize));
  return stream.Digest();
}

Status CheckLimits(const RdmaFrame& frame, uint32_t body_size, uint32_t pieces) {
  const bool asks = frame.kind == RdmaFrameKind::kRequest;
  const bool tells = asks || frame.kind == RdmaFrameKind::kAnswer;
  if (body_size > kMessageBodySizeMax || pieces > kRemotePiecesMax ||
      frame.payload_size > kMessagePayloadSizeMax || frame.room.size > kMessagePayloadSizeMax) {
    return {Code::kInvalid, "body or payload too large"};
  }
  if (!asks && (pieces != 0 || frame.room.size != 0)) {
    return {Code::kInvalid, "only a request has memory to be used"};
  }
  if (!tells && (body_size | frame.payload_size) != 0) {
    return {Code::kInvalid, "only requests and answers have a body and payload"};
  }
  return {};
}

Status TakePieces(ByteSpan bytes, uint32_t count, RdmaFrame& frame) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint8_t* const at = &bytes[kRdmaFrameHeaderSize + i * kRemotePieceSize];
    const RemotePiece piece{.address = LoadField<uint64_t>(at), .size = LoadField<uint32_t>(at + 8),
                            .key = LoadField<uint32_t>(at + 12)};
    if (piece.size == 0) return {Code::kInvalid, "an empty piece of payload"};
    sum += piece.size;
    frame.payload.push_back(piece);
  }
  if (frame.kind == RdmaFrameKind::kRequest && sum != frame.payload_size) {
    return {Code::kInvalid, "the pieces of a payload do not add up"};
  }
  return {};
}

}  // namespace

std::vector<uint8_t> EncodeRdmaFrame(const RdmaFrame& frame) {
  const size_t body_at = kRdmaFrameHeaderSize + frame.payload.size() * kRemotePieceSize;
  std::vector<uint8_t> bytes(body_at + frame.body.size());
  PutField(&bytes[0], kMagic);
  bytes[4] = static_cast<uint8_t>(frame.kind);
  PutField(&bytes[8], static_cast<uint32_t>(frame.body.size()));
  PutField(&bytes[12], static_cast<uint32_t>(frame.payload.size()));
  PutField(&bytes[16], frame.request_id);
  PutField(&bytes[24], frame.payload_size);
  PutField(&bytes[28], frame.room.size);
  PutField(&bytes[32], frame.room.address);
  PutField(&bytes[40], frame.room.key);
  for (size_t i = 0; i < frame.payload.size(); ++i) {
    uint8_t* const at = &bytes[kRdmaFrameHeaderSize + i * kRemotePieceSize];
    PutField(at, frame.payload[i].address);
    PutField(at + 8, frame.payload[i].size);
    PutField(at + 12, frame.payload[i].key);
  }
  if (!frame.body.empty()) std::memcpy(&bytes[body_at], frame.body.data(), frame.body.size());
  PutField(&bytes[kChecksumAt], ChecksumOf(bytes));
  return bytes;
}

Result<RdmaFrame> ParseRdmaFrame(ByteSpan bytes) {
  if (bytes.size() < kRdmaFrameHeaderSize) return Status(Code::kInvalid, "shorter than a header");
  if (LoadField<uint32_t>(&bytes[0]) != kMagic) return Status(Code::kInvalid, "wrong magic");
  if (bytes[4] < 1 || bytes[4] > 4) return Status(Code::kInvalid, "unknown kind of frame");
  if ((LoadField<uint32_t>(&bytes[4]) >> 8) != 0 || LoadField<uint32_t>(&bytes[44]) != 0) {
    return Status(Code::kInvalid, "reserved bytes are set");
  }
  RdmaFrame frame;
  frame.kind = static_cast<RdmaFrameKind>(bytes[4]);
  const auto body_size = LoadField<uint32_t>(&bytes[8]);
  const auto pieces = LoadField<uint32_t>(&bytes[12]);
  frame.request_id = LoadField<uint64_t>(&bytes[16]);
  frame.payload_size = LoadField<uint32_t>(&bytes[24]);
  frame.room = {.address = LoadField<uint64_t>(&bytes[32]), .size = LoadField<uint32_t>(&bytes[28]),
                .key = LoadField<uint32_t>(&bytes[40])};
  KV_RETURN_IF_ERROR(CheckLimits(frame, body_size, pieces));
  const size_t body_at = kRdmaFrameHeaderSize + size_t{pieces} * kRemotePieceSize;
  if (bytes.size() != body_at + body_size) return Status(Code::kInvalid, "of another size");
  if (ChecksumOf(bytes) != LoadField<uint64_t>(&bytes[kChecksumAt])) {
    return Status(Code::kInvalid, "damaged on its way");
  }
  KV_RETURN_IF_ERROR(TakePieces(bytes, pieces, frame));
  frame.body = Bytes::CopyOf(bytes.subspan(body_at));
  return frame;
}

}  // namespace cairn::kv
