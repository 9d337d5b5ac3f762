// The header before each message on a TCP connection between nodes, and its parser. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kvstore/base/bytes.h"
#include "kvstore/base/result.h"
#include "kvstore/io/network.h"

namespace cairn::kv {

enum class FrameKind : uint8_t {
  kRequest = 1,
  kAnswer = 2,
  kRefusal = 3,  // No answer will come. Without payload.
};

struct FrameHeader {
  FrameKind kind = FrameKind::kRequest;
  NodeId source;
  uint32_t payload_size = 0;
  uint64_t request_id = 0;  // Chosen by the caller; the answer repeats it.
};

// On the wire, little-endian: magic u32, kind u8, three zero bytes, source u32, payload size u32,
// request id u64.
inline constexpr size_t kFrameHeaderSize = 24;
inline constexpr uint32_t kFrameMagic = 0x314e5243;  // "CRN1"
using FrameHeaderBytes = std::array<uint8_t, kFrameHeaderSize>;

FrameHeaderBytes EncodeFrameHeader(const FrameHeader& header);
// kInvalid for anything that EncodeFrameHeader would not have made.
Result<FrameHeader> ParseFrameHeader(std::span<const uint8_t, kFrameHeaderSize> bytes);

}  // namespace cairn::kv
