// The byte codec of manifests: docs/formats/manifest.md.
#include "kvstore/types/manifest.h"

#include <algorithm>
#include <cstring>

#include "kvstore/base/checksum.h"
#include "kvstore/types/limits.h"
#include "kvstore/types/little_endian.h"

namespace cairn::kv {
namespace {

constexpr uint32_t kMagic = 0x314d4643;  // "CFM1"
constexpr uint16_t kVersion = 1;
constexpr size_t kChecksumSize = sizeof(uint64_t);

Status Corrupt(const char* what) {
  return Status(Code::kCorrupt, std::string("manifest: ") + what);
}

Status CheckShape(const Manifest& manifest) {
  if (manifest.data_shards < 1 || manifest.data_shards > kDataShardsMax ||
      manifest.parity_shards > kParityShardsMax) {
    return Corrupt("impossible shape");
  }
  if (manifest.shard_size == 0 || manifest.shard_size % kSectorSize != 0) {
    return Corrupt("shard size is not whole sectors");
  }
  if (manifest.retention.kind > RetentionKind::kRefreshed || manifest.retention.ttl_seconds == 0) {
    return Corrupt("impossible retention");
  }
  return Status();
}

Status CheckBlocks(const Manifest& manifest) {
  const uint64_t capacity = uint64_t{manifest.data_shards} * manifest.shard_size;
  uint64_t end = 0;
  size_t pieces = 0;
  for (const ManifestBlock& block : manifest.blocks) {
    if (block.size == 0 || block.size > kBlockSizeMax) return Corrupt("impossible block size");
    if (block.offset % kSectorSize != 0 || block.offset < end) return Corrupt("blocks overlap");
    if (block.offset > capacity || block.size > capacity - block.offset) {
      return Corrupt("a block reaches past the stripe");
    }
    end = block.offset + block.size;
    const uint32_t count = PieceCount(manifest, block);
    pieces += count > 1 ? count : 0;
  }
  if (pieces != manifest.piece_checksums.size()) return Corrupt("wrong number of pieces");
  return Status();
}

}  // namespace

uint32_t PieceCount(const Manifest& manifest, const ManifestBlock& block) {
  const uint64_t first = block.offset / manifest.shard_size;
  const uint64_t last = (block.offset + block.size - 1) / manifest.shard_size;
  return static_cast<uint32_t>(last - first + 1);
}

Bytes EncodeManifest(const Manifest& manifest) {
  KV_CHECK(manifest.targets.size() == manifest.shard_count());
  KV_CHECK(!manifest.blocks.empty());
  KV_CHECK(manifest.blocks.size() <= kStripeBlocksMax);
  KV_CHECK(CheckShape(manifest).ok());
  KV_CHECK(CheckBlocks(manifest).ok());
  FieldWriter out;
  out.Add(kMagic);
  out.Add(kVersion);
  out.Add(static_cast<uint16_t>(manifest.blocks.size()));
  out.Add(static_cast<uint16_t>(manifest.piece_checksums.size()));
  out.Add(static_cast<uint8_t>(manifest.retention.kind));
  out.Add(manifest.code_id);
  out.Add(manifest.data_shards);
  out.Add(manifest.parity_shards);
  out.Add(manifest.generation);
  out.Add(manifest.shard_size);
  out.Add(manifest.retention.ttl_seconds);
  out.Add(manifest.retention.expires_at.value);
  out.AddId(manifest.stripe);
  out.AddId(manifest.space);
  out.AddId(manifest.run);
  for (const TargetId target : manifest.targets) out.Add(target.value);
  for (const ManifestBlock& block : manifest.blocks) {
    out.AddId(block.id);
    out.Add(block.offset);
    out.Add(block.size);
    out.Add(uint32_t{0});
    out.Add(block.checksum);
  }
  for (const uint64_t checksum : manifest.piece_checksums) out.Add(checksum);
  out.Add(Checksum(out.bytes()));
  KV_CHECK(out.size() <= kManifestSizeMax);
  return Bytes::CopyOf(out.bytes());
}

Result<Manifest> DecodeManifest(ByteSpan bytes) {
  if (bytes.size() < kChecksumSize || bytes.size() > kManifestSizeMax) {
    return Corrupt("impossible length");
  }
  FieldReader sum(bytes.last(kChecksumSize));
  const ByteSpan body = bytes.first(bytes.size() - kChecksumSize);
  if (sum.Take<uint64_t>() != Checksum(body)) return Corrupt("fails its checksum");
  FieldReader in(body);
  if (in.Take<uint32_t>() != kMagic) return Corrupt("is none");
  if (in.Take<uint16_t>() != kVersion) return Corrupt("of an unknown version");
  const size_t block_count = in.Take<uint16_t>();
  const size_t piece_count = in.Take<uint16_t>();
  Manifest manifest;
  manifest.retention.kind = static_cast<RetentionKind>(in.Take<uint8_t>());
  manifest.code_id = in.Take<uint8_t>();
  manifest.data_shards = in.Take<uint8_t>();
  manifest.parity_shards = in.Take<uint8_t>();
  manifest.generation = in.Take<uint16_t>();
  manifest.shard_size = in.Take<uint32_t>();
  manifest.retention.ttl_seconds = in.Take<uint32_t>();
  manifest.retention.expires_at.value = in.Take<int64_t>();
  manifest.stripe = {in.TakeId()};
  manifest.space = {in.TakeId()};
  manifest.run = {in.TakeId()};
  KV_RETURN_IF_ERROR(CheckShape(manifest));
  if (block_count == 0 || block_count > kStripeBlocksMax) {
    return Corrupt("impossible counts");
  }
  for (uint32_t i = 0; i < manifest.shard_count(); ++i) {
    manifest.targets.push_back({in.Take<uint64_t>()});
  }
  for (size_t i = 0; i < block_count; ++i) {
    ManifestBlock block;
    block.id = {in.TakeId()};
    block.offset = in.Take<uint64_t>();
    block.size = in.Take<uint32_t>();
    if (in.Take<uint32_t>() != 0) return Corrupt("padding is not zero");
    block.checksum = in.Take<uint64_t>();
    manifest.blocks.push_back(block);
  }
  for (size_t i = 0; i < piece_count; ++i) manifest.piece_checksums.push_back(in.Take<uint64_t>());
  if (!in.fits() || in.rest() != 0) return Corrupt("impossible length");
  KV_RETURN_IF_ERROR(CheckBlocks(manifest));
  return manifest;
}

}  // namespace cairn::kv
