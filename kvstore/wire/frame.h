// The header before each message between a client process and a store, and its parser. Pure.
// docs/formats/wire.md tells the whole protocol.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kvstore/base/bytes.h"
#include "kvstore/base/result.h"
#include "kvstore/base/units.h"

namespace cairn::kv::wire {

// What a request asks for; its answer repeats it. Numbers are never used again.
enum class Verb : uint8_t {
  kHello = 1,
  kPing = 2,
  kRegister = 3,
  kUnregister = 4,
  kChallenge = 5,
  kAttach = 16,
  kLookup = 17,
  kLookupEach = 18,
  kRenew = 19,
  kRelease = 20,
  kGet = 21,
  kPut = 22,
  kTouch = 23,
  kDelete = 24,
  kStats = 64,
  kListTargets = 65,
  kListSpaces = 66,
  kCreateSpace = 67,
  kDeleteSpace = 68,
  kListBlocks = 69,
  kInspect = 70,
  kStartScrub = 71,
  kStopScrub = 72,
  kScrubStatus = 73,
  kStartRepair = 74,
  kStopRepair = 75,
  kRepairStatus = 76,
  kDescribeCluster = 77,
  kDrainNode = 78,
  kDrainTarget = 79,
};
bool IsKnown(Verb verb);
inline bool IsAdmin(Verb verb) { return verb >= Verb::kStats; }

enum class Direction : uint8_t { kRequest = 1, kAnswer = 2 };

struct FrameHeader {
  Verb verb = Verb::kPing;
  Direction direction = Direction::kRequest;
  uint32_t body_size = 0;
  uint64_t payload_size = 0;  // Bytes of blocks, after the body.
  uint64_t request_id = 0;    // Chosen by the client; unique among its requests in flight.
  // Of a request: after so long nobody waits for the answer. 0: no such limit.
  int64_t budget_nanos = 0;
  uint64_t checksum = 0;  // Of the header up to here, then the body.
};

inline constexpr size_t kFrameHeaderSize = 48;
inline constexpr uint32_t kFrameMagic = 0x31575243;  // "CRW1"
inline constexpr uint32_t kBodySizeMax = 4 * kMiB;
inline constexpr uint64_t kPayloadSizeMax = 1 * kGiB;
using FrameHeaderBytes = std::array<uint8_t, kFrameHeaderSize>;

// Header and body, ready to be sent. Fills in size and checksum.
std::vector<uint8_t> EncodeFrame(FrameHeader header, ByteSpan body);

// kInvalid for anything that EncodeFrame would not have made, as far as the header tells.
Result<FrameHeader> ParseFrameHeader(std::span<const uint8_t, kFrameHeaderSize> bytes);
// Whether header and body are as they were sent.
bool BodyFits(std::span<const uint8_t, kFrameHeaderSize> header, ByteSpan body);

}  // namespace cairn::kv::wire
