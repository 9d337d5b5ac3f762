// Encodes and checks the fixed structures of a target.
#include "kvstore/segment/format.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "kvstore/base/checksum.h"
#include "kvstore/types/limits.h"
#include "kvstore/types/little_endian.h"

namespace cairn::kv {
namespace {

constexpr uint64_t kTargetMagic = 0x5447544e52494143;   // "CAIRNTGT"
constexpr uint64_t kSegmentMagic = 0x4745534e52494143;  // "CAIRNSEG"
constexpr uint64_t kRecordMagic = 0x4345524e52494143;   // "CAIRNREC"
constexpr size_t kFixedSize = 32;                       // Of superblock and segment header.

Bytes Sealed(FieldWriter fields) {
  KV_CHECK(fields.size() == kFixedSize);
  fields.Add(Checksum(fields.bytes()));
  Bytes sector(kSectorSize);
  std::memcpy(sector.data(), fields.bytes().data(), fields.size());
  return sector;
}

bool IsSealed(ByteSpan sector) {
  FieldReader sum(sector.subspan(kFixedSize));
  return sum.Take<uint64_t>() == Checksum(sector.first(kFixedSize));
}

uint64_t HeaderChecksum(ByteSpan header, ByteSpan manifest) {
  ChecksumStream stream;
  stream.Add(header.first(kRecordHeaderSize - sizeof(uint64_t)));
  stream.Add(manifest);
  return stream.Digest();
}

}  // namespace

Bytes EncodeSuperblock(const Superblock& superblock) {
  FieldWriter fields;
  fields.Add(kTargetMagic);
  fields.Add(kTargetVersion);
  fields.Add(superblock.segment_count);
  fields.Add(superblock.target.value);
  fields.Add(superblock.segment_size);
  return Sealed(std::move(fields));
}

Result<std::optional<Superblock>> DecodeSuperblock(ByteSpan sector) {
  if (std::all_of(sector.begin(), sector.end(), [](uint8_t byte) { return byte == 0; })) {
    return std::optional<Superblock>();
  }
  FieldReader fields(sector);
  if (fields.Take<uint64_t>() != kTargetMagic) {
    return Status(Code::kCorrupt, "holds something that is not a Cairn target");
  }
  const auto version = fields.Take<uint32_t>();
  // A damaged version field and another version look alike; the checksum tells them apart.
  if (!IsSealed(sector)) return Status(Code::kCorrupt, "its superblock fails its checksum");
  if (version != kTargetVersion) {
    return Status(Code::kConflict, "is of format version " + std::to_string(version) +
                                       "; this program knows version " +
                                       std::to_string(kTargetVersion) + " only");
  }
  Superblock superblock;
  superblock.segment_count = fields.Take<uint32_t>();
  superblock.target.value = fields.Take<uint64_t>();
  superblock.segment_size = fields.Take<uint64_t>();
  if (superblock.segment_size % kSectorSize != 0 || superblock.segment_size < kSegmentSizeMin ||
      superblock.segment_size > kSegmentSizeMax || superblock.segment_count == 0 ||
      superblock.segment_count > kSegmentsMax) {
    return Status(Code::kCorrupt, "its superblock has impossible sizes");
  }
  return std::optional<Superblock>(superblock);
}

Bytes EncodeSegmentHeader(const SegmentHeader& header) {
  FieldWriter fields;
  fields.Add(kSegmentMagic);
  fields.Add(kTargetVersion);
  fields.Add(header.segment);
  fields.Add(header.target.value);
  fields.Add(header.epoch);
  return Sealed(std::move(fields));
}

std::optional<SegmentHeader> DecodeSegmentHeader(ByteSpan sector) {
  FieldReader fields(sector);
  if (fields.Take<uint64_t>() != kSegmentMagic || fields.Take<uint32_t>() != kTargetVersion ||
      !IsSealed(sector)) {
    return std::nullopt;
  }
  SegmentHeader header;
  header.segment = fields.Take<uint32_t>();
  header.target.value = fields.Take<uint64_t>();
  header.epoch = fields.Take<uint64_t>();
  return header;
}

Bytes EncodeRecordHeader(const RecordHeader& header, ByteSpan manifest) {
  KV_CHECK(header.manifest_size == manifest.size());
  FieldWriter fields;
  fields.Add(kRecordMagic);
  fields.Add(kTargetVersion);
  fields.Add(uint32_t{header.index.value});
  fields.Add(header.epoch);
  fields.AddId(header.stripe);
  fields.Add(header.payload_size);
  fields.Add(header.manifest_size);
  fields.Add(header.payload_checksum);
  fields.Add(uint64_t{0});
  Bytes sectors(header.header_bytes());
  std::memcpy(sectors.data(), fields.bytes().data(), kRecordHeaderSize);
  std::memcpy(sectors.data() + kRecordHeaderSize, manifest.data(), manifest.size());
  FieldWriter sum;
  sum.Add(HeaderChecksum(sectors.span(), manifest));
  std::memcpy(sectors.data() + kRecordHeaderSize - sum.size(), sum.bytes().data(), sum.size());
  return sectors;
}

std::optional<RecordHeader> PeekRecordHeader(ByteSpan sector, uint64_t epoch, uint64_t room) {
  FieldReader fields(sector);
  if (fields.Take<uint64_t>() != kRecordMagic || fields.Take<uint32_t>() != kTargetVersion) {
    return std::nullopt;
  }
  RecordHeader header;
  const auto index = fields.Take<uint32_t>();
  header.epoch = fields.Take<uint64_t>();
  header.stripe = {fields.TakeId()};
  header.payload_size = fields.Take<uint32_t>();
  header.manifest_size = fields.Take<uint32_t>();
  header.payload_checksum = fields.Take<uint64_t>();
  if (index >= kShardsMax || header.epoch != epoch || header.payload_size == 0 ||
      header.payload_size % kSectorSize != 0 ||
      header.payload_size > kStripePayloadMax || header.manifest_size > kManifestSizeMax ||
      header.record_bytes() > room) {
    return std::nullopt;
  }
  header.index = {static_cast<uint8_t>(index)};
  return header;
}

Result<Manifest> DecodeRecordManifest(const RecordHeader& header, ByteSpan sectors) {
  KV_CHECK(sectors.size() == header.header_bytes());
  const ByteSpan manifest_bytes = sectors.subspan(kRecordHeaderSize, header.manifest_size);
  FieldReader sum(sectors.subspan(kRecordHeaderSize - sizeof(uint64_t)));
  if (sum.Take<uint64_t>() != HeaderChecksum(sectors, manifest_bytes)) {
    return Status(Code::kCorrupt, "a record header fails its checksum");
  }
  KV_ASSIGN_OR_RETURN(Manifest manifest, DecodeManifest(manifest_bytes));
  if (manifest.stripe != header.stripe || manifest.shard_size != header.payload_size ||
      header.index.value >= manifest.shard_count()) {
    return Status(Code::kCorrupt, "a record's manifest is of another stripe");
  }
  return manifest;
}

}  // namespace cairn::kv
