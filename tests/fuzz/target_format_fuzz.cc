// Feeds the parsers of a target's bytes: superblock, segment header, record header, manifest.
//
// What decodes must encode to the same bytes. The checksums, which no fuzzer guesses, are mended in
// the input first, unless its first byte says otherwise.
#include <cstdint>
#include <cstring>

#include "kvstore/base/checksum.h"
#include "kvstore/segment/format.h"
#include "kvstore/types/manifest.h"

namespace cairn::kv {
namespace {

constexpr size_t kSealedSize = 32;

void Seal(MutableByteSpan bytes, size_t at) {
  if (bytes.size() < at + sizeof(uint64_t)) return;
  const uint64_t checksum = Checksum(bytes.first(at));
  std::memcpy(bytes.data() + at, &checksum, sizeof(checksum));
}

Bytes SectorOf(ByteSpan input, bool seal) {
  Bytes sector(kSectorSize);
  std::memcpy(sector.data(), input.data(), input.size() < 40 ? input.size() : 40);
  if (seal) Seal(sector.span(), kSealedSize);
  return sector;
}

bool Same(const Bytes& encoded, ByteSpan input) {
  return encoded.size() == input.size() &&
         std::memcmp(encoded.data(), input.data(), input.size()) == 0;
}

void TryManifest(ByteSpan input, bool seal) {
  Bytes bytes = Bytes::CopyOf(input);
  if (seal && bytes.size() >= 8) Seal(bytes.span(), bytes.size() - 8);
  const auto manifest = DecodeManifest(bytes.span());
  if (manifest.ok()) KV_CHECK(Same(EncodeManifest(manifest.value()), bytes.span()));
}

void TrySuperblock(ByteSpan input, bool seal) {
  const Bytes sector = SectorOf(input, seal);
  const auto superblock = DecodeSuperblock(sector.span());
  if (!superblock.ok() || !superblock.value()) return;
  KV_CHECK(Same(EncodeSuperblock(*superblock.value()), sector.span()));
}

void TrySegmentHeader(ByteSpan input, bool seal) {
  const Bytes sector = SectorOf(input, seal);
  const auto header = DecodeSegmentHeader(sector.span());
  if (header) KV_CHECK(Same(EncodeSegmentHeader(*header), sector.span()));
}

void TryRecord(ByteSpan input, bool seal) {
  Bytes first(kSectorSize);
  std::memcpy(first.data(), input.data(), input.size() < kSectorSize ? input.size() : kSectorSize);
  uint64_t epoch = 0;
  std::memcpy(&epoch, first.data() + 16, sizeof(epoch));
  const auto header = PeekRecordHeader(first.span(), epoch, 64 * kMiB);
  if (!header) return;
  KV_CHECK(header->record_bytes() <= 64 * kMiB);
  Bytes sectors(header->header_bytes());
  std::memcpy(sectors.data(), input.data(),
              input.size() < sectors.size() ? input.size() : sectors.size());
  if (seal) {
    const MutableByteSpan manifest = sectors.span().subspan(kRecordHeaderSize,
                                                            header->manifest_size);
    if (manifest.size() >= 8) Seal(manifest, manifest.size() - 8);
    ChecksumStream stream;
    stream.Add(sectors.span().first(kRecordHeaderSize - 8));
    stream.Add(manifest);
    const uint64_t digest = stream.Digest();
    std::memcpy(sectors.data() + kRecordHeaderSize - 8, &digest, sizeof(digest));
  }
  const auto manifest = DecodeRecordManifest(*header, sectors.span());
  if (manifest.ok()) KV_CHECK(manifest.value().shard_size == header->payload_size);
}

}  // namespace
}  // namespace cairn::kv

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const bool seal = (data[0] & 0x80) == 0;
  const cairn::kv::ByteSpan rest(data + 1, size - 1);
  if (data[0] % 4 == 0) cairn::kv::TryManifest(rest, seal);
  if (data[0] % 4 == 1) cairn::kv::TrySuperblock(rest, seal);
  if (data[0] % 4 == 2) cairn::kv::TrySegmentHeader(rest, seal);
  if (data[0] % 4 == 3) cairn::kv::TryRecord(rest, seal);
  return 0;
}
