// Packs places: 22 bits segment, 18 sector, 14 payload sectors less one, 4 header sectors, 6 index.
#include "kvstore/segment/shard_table.h"

#include "kvstore/segment/format.h"
#include "kvstore/types/limits.h"

namespace cairn::kv {
namespace {

constexpr uint32_t kSectorBits = 18;
constexpr uint32_t kPayloadBits = 14;
constexpr uint32_t kHeaderBits = 4;
constexpr uint32_t kIndexBits = 6;
constexpr uint32_t kSegmentBits = 64 - kSectorBits - kPayloadBits - kHeaderBits - kIndexBits;

constexpr uint64_t kHeaderSectorsMax =
    (kRecordHeaderSize + kManifestSizeMax + kSectorSize - 1) / kSectorSize;

static_assert(kSegmentSizeMax / kSectorSize <= 1u << kSectorBits);
static_assert(kStripePayloadMax / kSectorSize <= 1u << kPayloadBits);
static_assert(kHeaderSectorsMax < 1u << kHeaderBits);
static_assert(kShardsMax <= 1u << kIndexBits);
static_assert(kSegmentsMax <= 1u << kSegmentBits);

// Takes the lowest `size` bits off `bits`.
uint32_t TakeBits(uint64_t& bits, uint32_t size) {
  const auto field = static_cast<uint32_t>(bits & ((uint64_t{1} << size) - 1));
  bits >>= size;
  return field;
}

}  // namespace

bool IsPackable(const ShardPlace& place) {
  return place.segment.value < kSegmentsMax && place.sector < kSegmentSizeMax / kSectorSize &&
         place.payload_size > 0 && place.payload_size <= kStripePayloadMax &&
         place.payload_size % kSectorSize == 0 && place.header_sectors > 0 &&
         place.header_sectors <= kHeaderSectorsMax && place.index.value < kShardsMax;
}

PackedPlace::PackedPlace(const ShardPlace& place) : bits_(place.segment.value) {
  KV_CHECK(IsPackable(place));
  bits_ = bits_ << kSectorBits | place.sector;
  bits_ = bits_ << kPayloadBits | (place.payload_size / kSectorSize - 1);
  bits_ = bits_ << kHeaderBits | place.header_sectors;
  bits_ = bits_ << kIndexBits | place.index.value;
}

ShardPlace PackedPlace::Unpack() const {
  uint64_t bits = bits_;
  ShardPlace place;
  place.index.value = static_cast<uint8_t>(TakeBits(bits, kIndexBits));
  place.header_sectors = static_cast<uint16_t>(TakeBits(bits, kHeaderBits));
  place.payload_size = static_cast<uint32_t>((TakeBits(bits, kPayloadBits) + 1) * kSectorSize);
  place.sector = TakeBits(bits, kSectorBits);
  place.segment.value = TakeBits(bits, kSegmentBits);
  return place;
}

}  // namespace cairn::kv
