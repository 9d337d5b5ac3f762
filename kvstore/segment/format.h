// The bytes of a target: superblock, segment header, record header. docs/formats/segment.md.
#pragma once

#include <cstdint>
#include <optional>

#include "kvstore/base/bytes.h"
#include "kvstore/base/result.h"
#include "kvstore/types/ids.h"
#include "kvstore/types/manifest.h"

namespace cairn::kv {

inline constexpr uint32_t kTargetVersion = 1;
inline constexpr uint64_t kSuperblockOffsets[] = {0, 32 * kKiB};
inline constexpr uint64_t kSegmentsOffset = 64 * kKiB;
inline constexpr uint64_t kRecordHeaderSize = 64;

struct Superblock {
  TargetId target;
  uint64_t segment_size = 0;
  uint32_t segment_count = 0;
  auto operator<=>(const Superblock&) const = default;
};

// One sector each.
Bytes EncodeSuperblock(const Superblock& superblock);
// None for a blank sector. kConflict: another version. kCorrupt: anything else that is not whole.
Result<std::optional<Superblock>> DecodeSuperblock(ByteSpan sector);

struct SegmentHeader {
  TargetId target;
  uint32_t segment = 0;
  uint64_t epoch = 0;
  auto operator<=>(const SegmentHeader&) const = default;
};
Bytes EncodeSegmentHeader(const SegmentHeader& header);
// None when the sector holds no whole header.
std::optional<SegmentHeader> DecodeSegmentHeader(ByteSpan sector);

struct RecordHeader {
  ShardIndex index;
  uint64_t epoch = 0;
  StripeId stripe;
  uint32_t payload_size = 0;
  uint32_t manifest_size = 0;
  uint64_t payload_checksum = 0;
  auto operator<=>(const RecordHeader&) const = default;

  uint64_t header_bytes() const { return AlignUp(kRecordHeaderSize + manifest_size, kSectorSize); }
  uint64_t record_bytes() const { return header_bytes() + payload_size; }
};

// The header's sectors, with the encoded manifest in them.
Bytes EncodeRecordHeader(const RecordHeader& header, ByteSpan manifest);
// From the first sector alone: plausible, of this epoch, and within `room` bytes. Not yet verified.
std::optional<RecordHeader> PeekRecordHeader(ByteSpan sector, uint64_t epoch, uint64_t room);
// From all header sectors: verified, with a manifest that agrees with the header. kCorrupt if not.
Result<Manifest> DecodeRecordManifest(const RecordHeader& header, ByteSpan sectors);

}  // namespace cairn::kv
