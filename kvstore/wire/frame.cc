// One layout, written and read field by field.
#include "kvstore/wire/frame.h"

#include "kvstore/base/checksum.h"
#include "kvstore/types/little_endian.h"

namespace cairn::kv::wire {
namespace {

constexpr size_t kCheckedSize = kFrameHeaderSize - sizeof(uint64_t);

uint64_t ChecksumOf(ByteSpan checked_header, ByteSpan body) {
  ChecksumStream stream;
  stream.Add(checked_header);
  stream.Add(body);
  return stream.Digest();
}

}  // namespace

bool IsKnown(Verb verb) {
  switch (verb) {
    case Verb::kHello:
    case Verb::kPing:
    case Verb::kRegister:
    case Verb::kUnregister:
    case Verb::kChallenge:
    case Verb::kAttach:
    case Verb::kLookup:
    case Verb::kLookupEach:
    case Verb::kRenew:
    case Verb::kRelease:
    case Verb::kGet:
    case Verb::kPut:
    case Verb::kTouch:
    case Verb::kDelete:
    case Verb::kStats:
    case Verb::kListTargets:
    case Verb::kListSpaces:
    case Verb::kCreateSpace:
    case Verb::kDeleteSpace:
    case Verb::kListBlocks:
    case Verb::kInspect:
    case Verb::kStartScrub:
    case Verb::kStopScrub:
    case Verb::kScrubStatus:
    case Verb::kStartRepair:
    case Verb::kStopRepair:
    case Verb::kRepairStatus:
    case Verb::kDescribeCluster:
    case Verb::kDrainNode:
    case Verb::kDrainTarget:
      return true;
  }
  return false;
}

std::vector<uint8_t> EncodeFrame(FrameHeader header, ByteSpan body) {
  KV_CHECK(body.size() <= kBodySizeMax);
  FieldWriter head;
  head.Add(kFrameMagic);
  head.Add(static_cast<uint8_t>(header.verb));
  head.Add(static_cast<uint8_t>(header.direction));
  head.Add(uint16_t{0});
  head.Add(static_cast<uint32_t>(body.size()));
  head.Add(uint32_t{0});
  head.Add(header.payload_size);
  head.Add(header.request_id);
  head.Add(header.budget_nanos);
  head.Add(ChecksumOf(head.bytes(), body));
  std::vector<uint8_t> frame;
  frame.reserve(kFrameHeaderSize + body.size());
  frame.insert(frame.end(), head.bytes().begin(), head.bytes().end());
  frame.insert(frame.end(), body.begin(), body.end());
  return frame;
}

Result<FrameHeader> ParseFrameHeader(std::span<const uint8_t, kFrameHeaderSize> bytes) {
  FieldReader fields(bytes);
  const auto magic = fields.Take<uint32_t>();
  FrameHeader header;
  header.verb = static_cast<Verb>(fields.Take<uint8_t>());
  header.direction = static_cast<Direction>(fields.Take<uint8_t>());
  const auto zero = fields.Take<uint16_t>();
  header.body_size = fields.Take<uint32_t>();
  const auto zero_too = fields.Take<uint32_t>();
  header.payload_size = fields.Take<uint64_t>();
  header.request_id = fields.Take<uint64_t>();
  header.budget_nanos = fields.Take<int64_t>();
  header.checksum = fields.Take<uint64_t>();
  const bool directed =
      header.direction == Direction::kRequest || header.direction == Direction::kAnswer;
  if (magic != kFrameMagic || zero != 0 || zero_too != 0 || !directed || !IsKnown(header.verb)) {
    return Status(Code::kInvalid, "not a frame of this protocol");
  }
  if (header.body_size > kBodySizeMax || header.payload_size > kPayloadSizeMax ||
      header.budget_nanos < 0) {
    return Status(Code::kInvalid, "a frame beyond the limits");
  }
  return header;
}

bool BodyFits(std::span<const uint8_t, kFrameHeaderSize> header, ByteSpan body) {
  FieldReader fields(ByteSpan(header).subspan(kCheckedSize));
  return fields.Take<uint64_t>() == ChecksumOf(ByteSpan(header).first(kCheckedSize), body);
}

}  // namespace cairn::kv::wire
