// The header before each message on a TCP connection between nodes, and its parser. Pure.
// docs/formats/peer.md tells the whole protocol.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kvstore/base/bytes.h"
#include "kvstore/base/result.h"
#include "kvstore/io/network.h"

namespace cairn::kv {

enum class FrameKind : uint8_t {
  kRequest = 1,
  kAnswer = 2,
  kRefusal = 3,  // No answer will come. Without body and payload.
};

struct FrameHeader {
  FrameKind kind = FrameKind::kRequest;
  uint32_t body_size = 0;
  uint32_t payload_size = 0;
  uint32_t room = 0;        // Of a request: the payload of its answer is at most this.
  uint64_t request_id = 0;  // Chosen by the caller; the answer repeats it.
};

inline constexpr size_t kFrameHeaderSize = 40;
inline constexpr uint32_t kFrameMagic = 0x324e5243;  // "CRN2"
using FrameHeaderBytes = std::array<uint8_t, kFrameHeaderSize>;

// Header and body, ready to be sent. Fills in the body's size and the checksum over both.
std::vector<uint8_t> EncodeFrame(FrameHeader header, ByteSpan body);
// kInvalid for anything that EncodeFrame would not have made, as far as the header tells.
Result<FrameHeader> ParseFrameHeader(std::span<const uint8_t, kFrameHeaderSize> bytes);
// Whether header and body are as they were sent.
bool BodyFits(std::span<const uint8_t, kFrameHeaderSize> header, ByteSpan body);

}  // namespace cairn::kv
