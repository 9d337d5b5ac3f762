// What two nodes say to each other on an RDMA connection: bodies, and where payloads lie. Pure.
// docs/formats/peer.md tells the whole protocol.
#pragma once

#include <cstdint>
#include <vector>

#include "kvstore/base/bytes.h"
#include "kvstore/base/result.h"
#include "kvstore/io/network.h"

namespace cairn::kv {

enum class RdmaFrameKind : uint8_t {
  kRequest = 1,
  kAnswer = 2,   // What it says of payload is in place already.
  kRefusal = 3,  // No answer will come, and nothing of the request's memory is used any more.
  kCancel = 4,   // Of a request: answer or refuse it now.
};

// Memory of the node that says so, for the other to read or write until it has answered.
struct RemotePiece {
  uint64_t address = 0;
  uint32_t size = 0;
  uint32_t key = 0;
};

// More pieces of payload are gathered into one.
inline constexpr size_t kRemotePiecesMax = 256;

struct RdmaFrame {
  RdmaFrameKind kind = RdmaFrameKind::kRequest;
  uint64_t request_id = 0;            // Chosen by the caller; the answer repeats it.
  uint32_t payload_size = 0;          // Of a request the sum of `payload`.
  std::vector<RemotePiece> payload;   // Of a request; the callee reads it.
  RemotePiece room;                   // Of a request; the callee writes the answer's payload there.
  Bytes body;
};

inline constexpr size_t kRdmaFrameHeaderSize = 56;
inline constexpr size_t kRemotePieceSize = 16;
inline constexpr size_t kRdmaFrameSizeMax =
    kRdmaFrameHeaderSize + kRemotePiecesMax * kRemotePieceSize + kMessageBodySizeMax;

std::vector<uint8_t> EncodeRdmaFrame(const RdmaFrame& frame);
// kInvalid for anything that EncodeRdmaFrame would not have made, or that was damaged.
Result<RdmaFrame> ParseRdmaFrame(ByteSpan bytes);

}  // namespace cairn::kv
