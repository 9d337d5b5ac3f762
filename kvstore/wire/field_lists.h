// The fields of the store's own types, in the order of docs/formats/wire.md.
#pragma once

#include "kvstore/wire/body_io.h"
#include "kvstore/wire/messages.h"

namespace cairn::kv::wire {

inline constexpr size_t kIdSize = 16;
inline constexpr size_t kWordsMax = 512;
// Of each status in a list that is longer than kBlocksMax.
inline constexpr size_t kWordsMaxInLongList = 32;
inline constexpr size_t kStatusSizeMin = 3;
inline constexpr uint32_t kTargetsMax = 4096;
inline constexpr uint32_t kSpacesMax = 65'536;
inline constexpr size_t kSpaceTextMax = 4096;
inline constexpr size_t kNameMax = 128;

template <typename Io>
void StatusFields(Io& io, For<Io, Status>& status, size_t words_max = kWordsMax) {
  Code code = status.code();
  std::string words = status.message();
  io.Enum(code, Code::kConflict);
  io.Words(words, words_max);
  if constexpr (Io::kReading) {
    status = code == Code::kOk ? Status() : Status(code, std::move(words));
  }
}

template <typename Io>
void ChainFields(Io& io, For<Io, std::vector<BlockId>>& chain) {
  io.List(chain, kChainBlocksMax, kIdSize, [&io](auto& id) { io.Id(id); });
}

template <typename Io>
void LeaseFields(Io& io, For<Io, std::vector<LeaseId>>& leases) {
  io.List(leases, kLeasesMax, sizeof(uint64_t), [&io](auto& lease) { io.Int(lease.value); });
}

template <typename Io>
void Fields(Io& io, For<Io, NamespaceId>& id) {
  io.Id(id);
}

// Without token and proof: what anyone may see.
template <typename Io>
void ShapeFields(Io& io, For<Io, NamespaceOptions>& options) {
  io.Text(options.name, kNameMax);
  io.Text(options.fingerprint, kSpaceTextMax);
  io.Int(options.data_shards);
  io.Int(options.parity_shards);
  io.Int(options.run_blocks);
  io.Enum(options.retention, RetentionKind::kRefreshed);
  io.Int(options.ttl_seconds);
  io.Enum(options.medium, Medium::kMemory);
  io.Int(options.quota_bytes);
  io.Bool(options.create);
}

template <typename Io>
void Fields(Io& io, For<Io, ChainHit>& hit) {
  io.Int(hit.blocks);
  io.Enum(hit.miss, MissReason::kUnavailable);
  io.List(hit.sizes, kChainBlocksMax, sizeof(uint32_t), [&io](auto& size) { io.Int(size); });
  io.Int(hit.load_estimate.value);
  io.Int(hit.lease.value);
  io.Int(hit.lease_for.value);
  io.Require(hit.sizes.size() == hit.blocks);
}

template <typename Io>
void Fields(Io& io, For<Io, EachHit>& hit) {
  io.List(hit.blocks, kChainBlocksMax, sizeof(uint32_t) + 1, [&io](auto& block) {
    io.Int(block.size);
    io.Enum(block.miss, MissReason::kUnavailable);
  });
  io.Int(hit.load_estimate.value);
  io.Int(hit.lease.value);
  io.Int(hit.lease_for.value);
}

template <typename Io>
void Fields(Io& io, For<Io, std::vector<Status>>& statuses) {
  io.List(statuses, kChainBlocksMax, kStatusSizeMin, [&](auto& status) {
    StatusFields(io, status, statuses.size() > kBlocksMax ? kWordsMaxInLongList : kWordsMax);
  });
}

template <typename Io>
void Fields(Io& io, For<Io, std::vector<TargetInfo>>& targets) {
  io.List(targets, kTargetsMax, kIdSize, [&io](auto& target) {
    io.Int(target.place);
    io.Int(target.id.value);
    io.Text(target.label, kTextMax);
    io.Enum(target.state, TargetInfo::State::kRepairing);
    io.Text(target.reason, kTextMax);
    for (auto* count : {&target.capacity_bytes, &target.free_bytes, &target.live_bytes,
                        &target.shards, &target.reads, &target.bytes_read, &target.bytes_appended,
                        &target.bytes_moved, &target.corrupt_reads}) {
      io.Int(*count);
    }
  });
}

template <typename Io>
void Fields(Io& io, For<Io, std::vector<SpaceInfo>>& spaces) {
  io.List(spaces, kSpacesMax, kIdSize, [&io](auto& space) {
    io.Id(space.id);
    ShapeFields(io, space.options);
    io.Bool(space.has_token);
    io.Int(space.stored_bytes);
    io.Int(space.kept_bytes);
    io.Int(space.stripes);
  });
}

template <typename Io>
void Fields(Io& io, For<Io, BlockInfo>& block) {
  io.Id(block.id);
  io.Int(block.size);
  io.Id(block.stripe);
  io.Id(block.run);
  io.Int(block.expires_at.value);
  io.Int(block.last_access.value);
  io.Int(block.keep_until.value);
}

template <typename Io>
void Fields(Io& io, For<Io, BlockPage>& page) {
  io.List(page.blocks, kPageBlocksMax, 3 * kIdSize, [&io](auto& block) { Fields(io, block); });
  io.Text(page.next, kTextMax);
}

template <typename Io>
void Fields(Io& io, For<Io, Manifest>& manifest) {
  if constexpr (Io::kReading) {
    Result<Manifest> decoded = DecodeManifest(io.Blob());
    io.Require(decoded.ok());
    if (decoded.ok()) manifest = std::move(decoded).value();
  } else {
    io.Blob(EncodeManifest(manifest).span());
  }
}

template <typename Io>
void Fields(Io& io, For<Io, BlockDetails>& details) {
  Fields(io, details.block);
  Fields(io, details.manifest);
  io.List(details.shards, kShardsMax, kIdSize, [&io](auto& shard) {
    io.Int(shard.index.value);
    io.Int(shard.target.value);
    io.Int(shard.place);
    io.Bool(shard.present);
    StatusFields(io, shard.verified);
  });
  io.List(details.index_places, kTargetsMax, sizeof(uint32_t), [&io](auto& at) { io.Int(at); });
}

template <typename Io>
void Fields(Io& io, For<Io, MaintenanceStatus>& status) {
  io.Bool(status.running);
  for (auto* count : {&status.bytes_per_second, &status.bytes_done, &status.bytes_left,
                      &status.shards_checked, &status.shards_damaged, &status.shards_repaired,
                      &status.shards_failed, &status.passes, &status.seconds_left}) {
    io.Int(*count);
  }
}

// By name, so that either side may have counters that the other does not know.
void Fields(BodyWriter& io, const StoreStats& stats);
void Fields(BodyReader& io, StoreStats& stats);

}  // namespace cairn::kv::wire
