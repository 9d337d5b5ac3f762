// Plans a stripe, fills its shards, appends them all at once and publishes when they are there.
#include "kvstore/client/stripe_writer.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "erasure/codec.h"
#include "kvstore/base/checksum.h"
#include "kvstore/types/group_hash.h"
#include "kvstore/types/limits.h"

namespace cairn::kv {
namespace {

// Rounds of making room before a put is told to back off.
constexpr uint32_t kRoomAttempts = 16;

// Shards lie an odd number of sectors apart, so that equal offsets fall into different cache sets.
uint64_t StrideOf(uint32_t shard_size) {
  const uint64_t sectors = shard_size / kSectorSize;
  return (sectors + (sectors % 2 == 0 ? 1 : 2)) * kSectorSize;
}

// Of blocks and pieces, into the manifest. Returns those of the data shards that a piece fills.
std::vector<std::optional<uint64_t>> AddChecksums(const StripeOrder& order,
                                                  const StripeLayout& layout,
                                                  Manifest& manifest) {
  std::vector<std::optional<uint64_t>> shards(layout.data_shards);
  for (size_t i = 0; i < order.blocks.size(); ++i) {
    const Parts parts = PartsOf(order.blocks[i]);
    const auto size = static_cast<uint32_t>(SizeOf(order.blocks[i]));
    manifest.blocks.push_back({.id = order.blocks[i].id,
                               .offset = layout.offsets[i],
                               .size = size,
                               .checksum = ChecksumOf(parts, 0, size)});
    const auto pieces = PiecesOf(layout.offsets[i], size, layout.shard_size);
    for (const Piece& piece : pieces) {
      uint64_t checksum = manifest.blocks.back().checksum;
      if (pieces.size() > 1) {
        checksum = ChecksumOf(parts, piece.block_offset, piece.size);
        manifest.piece_checksums.push_back(checksum);
      }
      if (piece.size == layout.shard_size) shards[piece.shard.value] = checksum;
    }
  }
  return shards;
}

// The index has not filed the stripe, and will not.
bool IsRefused(const Status& outcome) {
  const Code code = outcome.code();
  return code == Code::kConflict || code == Code::kNotFound || code == Code::kInvalid;
}

// What the callers said of their bytes holds for those that were read.
Status CheckBytes(const StripeOrder& order, const Manifest& manifest) {
  for (size_t i = 0; i < order.blocks.size(); ++i) {
    const std::optional<uint64_t>& said = order.blocks[i].checksum;
    if (said.has_value() && *said != manifest.blocks[i].checksum) {
      return {Code::kCorrupt, "the bytes of a block do not have the checksum that came with them"};
    }
  }
  return Status();
}

}  // namespace

StripeWriter::StripeWriter(WriterParts parts, uint64_t buffer_bytes_max, uint64_t shard_size_max)
    : parts_(parts), shard_size_max_(shard_size_max),
      buffers_(parts.loop, buffer_bytes_max, parts.network) {}

uint64_t StripeWriter::PayloadMax(uint8_t data_shards, uint8_t parity_shards) const {
  // In the worst case every shard is copied: the callers' memory is not aligned.
  const uint64_t strides = uint64_t{data_shards} + parity_shards;
  const uint64_t shard = std::min(shard_size_max_, buffers_.largest() / strides);
  const uint64_t usable =
      shard < 4 * kSectorSize ? 0 : AlignDown(shard - 2 * kSectorSize, kSectorSize);
  return std::min(kStripePayloadMax, usable * data_shards);
}

Task<Status> StripeWriter::Write(StripeOrder order) {
  Status outcome = co_await WriteOnce(order);
  // The targets that failed are suspect now: once more, on the others. And where no room could be
  // made, what this put had appended was in the way, and can be freed now.
  const bool again = outcome.code() == Code::kUnavailable || outcome.code() == Code::kNoSpace;
  if (again) outcome = co_await WriteOnce(order);
  co_return outcome;
}

Task<Status> StripeWriter::WriteOnce(const StripeOrder& order) {
  StripeLayout layout;
  Result<Manifest> planned = Plan(order, layout);
  if (!planned.ok()) co_return planned.status();
  Manifest manifest = std::move(planned).value();
  std::vector<Parts> blocks;
  for (const BlockWrite& block : order.blocks) blocks.push_back(PartsOf(block));
  const std::vector<ShardSource> sources = SourcesOf(layout, blocks);
  const auto copied = std::count_if(sources.begin(), sources.end(),
                                    [](const ShardSource& one) { return one.direct == nullptr; });
  const uint64_t strides = static_cast<uint64_t>(copied) + manifest.parity_shards;
  BufferPool::Buffer buffer =
      co_await buffers_.Take(std::max<uint64_t>(1, strides) * StrideOf(layout.shard_size));
  const MutableByteSpan scratch = buffer.span();
  Shards shards;
  std::function<void()> fill = [&] { Fill(order, layout, sources, scratch, manifest, shards); };
  co_await RunFor(layout.payload, parts_.workers, std::move(fill));
  KV_CO_RETURN_IF_ERROR(CheckBytes(order, manifest));
  in_flight_.push_back(manifest.stripe);
  Status outcome = co_await Commit(order, manifest, shards);
  std::erase(in_flight_, manifest.stripe);
  co_return outcome;
}

Result<Manifest> StripeWriter::Plan(const StripeOrder& order, StripeLayout& layout) {
  std::vector<uint32_t> sizes;
  for (const BlockWrite& block : order.blocks) {
    sizes.push_back(static_cast<uint32_t>(SizeOf(block)));
  }
  const size_t live = parts_.placement.width_max();
  if (live <= order.parity_shards) {
    return Status(Code::kUnavailable, "only " + std::to_string(live) + " targets take writes");
  }
  // With targets down the stripe gets narrower, not less redundant.
  const auto width =
      static_cast<uint8_t>(std::min<size_t>(order.data_shards, live - order.parity_shards));
  layout = LayOut(sizes, width, shard_size_max_);
  if (layout.data_shards == 0) {
    return Status(Code::kNoSpace, "a stripe of " + std::to_string(width) +
                                      " data shards of at most " + std::to_string(shard_size_max_) +
                                      " bytes cannot hold " + std::to_string(layout.payload) +
                                      " bytes");
  }
  const size_t count = size_t{layout.data_shards} + order.parity_shards;
  auto targets = parts_.placement.ChooseTargets(count, parts_.random);
  if (!targets) return Status(Code::kUnavailable, "too few targets take writes");
  Manifest manifest;
  manifest.stripe = DrawStripeId(order.space, order.run, parts_.random);
  manifest.space = order.space;
  manifest.run = order.run;
  manifest.code_id = static_cast<uint8_t>(erasure::PreferredCode(order.parity_shards));
  manifest.data_shards = layout.data_shards;
  manifest.parity_shards = order.parity_shards;
  manifest.shard_size = layout.shard_size;
  manifest.retention = order.retention;
  manifest.targets = std::move(*targets);
  return manifest;
}

void StripeWriter::Fill(const StripeOrder& order, const StripeLayout& layout,
                        const std::vector<ShardSource>& sources, MutableByteSpan scratch,
                        Manifest& manifest, Shards& shards) {
  const uint64_t stride = StrideOf(layout.shard_size);
  uint64_t used = 0;
  const auto next = [&] {
    const MutableByteSpan place = scratch.subspan(used, layout.shard_size);
    used += stride;
    return place;
  };
  std::vector<std::optional<uint64_t>> checksums = AddChecksums(order, layout, manifest);
  checksums.resize(manifest.shard_count());
  std::vector<ByteSpan> bytes;
  for (const ShardSource& source : sources) {
    if (source.direct != nullptr) {
      bytes.emplace_back(source.direct, layout.shard_size);
      continue;
    }
    const MutableByteSpan place = next();
    uint32_t reached = 0;
    for (const ShardSource::Copy& copy : source.copies) {
      std::fill(place.begin() + reached, place.begin() + copy.to, uint8_t{0});
      std::copy(copy.from.begin(), copy.from.end(), place.begin() + copy.to);
      reached = copy.to + static_cast<uint32_t>(copy.from.size());
    }
    std::fill(place.begin() + reached, place.end(), uint8_t{0});
    bytes.push_back(place);
  }
  std::vector<MutableByteSpan> parity;
  for (uint8_t i = 0; i < manifest.parity_shards; ++i) parity.push_back(next());
  const auto codec =
      erasure::Codec::Create({.data_shards = manifest.data_shards,
                              .parity_shards = manifest.parity_shards,
                              .code = static_cast<erasure::CodeId>(manifest.code_id)});
  KV_CHECK(codec.has_value());
  codec->Encode(bytes, parity);
  bytes.insert(bytes.end(), parity.begin(), parity.end());
  for (size_t i = 0; i < bytes.size(); ++i) {
    shards.payloads.push_back({bytes[i], checksums[i] ? *checksums[i] : Checksum(bytes[i])});
  }
}

Task<Status> StripeWriter::Commit(const StripeOrder& order, const Manifest& manifest,
                                  Shards& shards) {
  Status outcome = co_await AppendAll(manifest, shards);
  if (outcome.ok() && order.ack == Ack::kDurable) outcome = co_await SyncAll(manifest, shards);
  if (outcome.ok()) {
    outcome = co_await Publish(order, manifest);
    if (outcome.ok()) {
      ++parts_.stats.stripes_written;
      if (shards.stored.size() < manifest.shard_count()) parts_.index.NoteLacking(manifest.stripe);
      co_return outcome;
    }
    // Whether it is filed nobody knows. Its shards stay, and are reaped when no home has it.
    if (!IsRefused(outcome)) co_return Status(Code::kUnavailable, outcome.ToString());
  }
  co_await DropShards(manifest);
  ++parts_.stats.dropped_stripes;
  co_return outcome;
}

Task<Status> StripeWriter::Publish(const StripeOrder& order, const Manifest& manifest) {
  const IndexedStripe stripe{.manifest = manifest,
                             .expires_at = manifest.retention.expires_at,
                             .position = order.position,
                             .keep_until = order.keep_until};
  const Durability durability =
      order.ack == Ack::kDurable ? Durability::kPowerCut : Durability::kProcess;
  IndexedStripe first = stripe;
  Status outcome = co_await parts_.index.Publish(std::move(first), durability);
  if (outcome.ok() || IsRefused(outcome)) co_return outcome;
  // The same stripe once more, perhaps at another home: one that has filed it says so.
  IndexedStripe second = stripe;
  co_return co_await parts_.index.Publish(std::move(second), durability);
}

Task<void> StripeWriter::DropShards(const Manifest& manifest) {
  std::vector<Task<Status>> calls;
  for (uint8_t i = 0; i < manifest.shard_count(); ++i) {
    TargetPort* port = parts_.targets.Find(manifest.targets[i]);
    if (port != nullptr && port->MayHold(manifest.stripe, {i})) {
      calls.push_back(port->Drop(manifest.stripe));
    }
  }
  for (Task<Status>& call : calls) (void)co_await call;
}

Task<Status> StripeWriter::AppendAll(const Manifest& manifest, Shards& shards) {
  std::vector<uint8_t> missing;
  for (uint8_t i = 0; i < manifest.shard_count(); ++i) missing.push_back(i);
  Status failure;
  std::vector<TargetId> failed;
  for (uint32_t attempt = 0; !missing.empty() && attempt < kRoomAttempts; ++attempt) {
    std::vector<std::pair<uint8_t, Task<Status>>> calls;
    for (const uint8_t i : missing) {
      TargetPort* port = parts_.targets.Find(manifest.targets[i]);
      if (port == nullptr) {  // It left the cluster since it was chosen.
        failed.push_back(manifest.targets[i]);
        failure = Status(Code::kUnavailable, "a target is not there any more");
        continue;
      }
      calls.emplace_back(i, port->Append(manifest, {i}, shards.payloads[i]));
    }
    missing.clear();
    for (auto& [i, call] : calls) {
      Status outcome = co_await call;
      parts_.targets.Note(manifest.targets[i], outcome);
      if (outcome.ok()) {
        shards.stored.push_back(manifest.targets[i]);
      } else if (outcome.code() == Code::kNoSpace) {
        missing.push_back(i);
      } else {
        failed.push_back(manifest.targets[i]);
        failure = std::move(outcome);
      }
    }
    if (missing.empty()) break;
    Status room = co_await parts_.keeper.MakeRoom(manifest.shard_size);
    if (!room.ok()) co_return room;
  }
  if (missing.size() > manifest.parity_shards) {
    co_return Status(Code::kOverloaded, "space does not come free fast enough");
  }
  // A few targets without room where the others have it are broken, not full.
  for (const uint8_t i : missing) {
    failed.push_back(manifest.targets[i]);
    failure = Status(Code::kUnavailable, "a target has no room and cannot make any");
  }
  if (failed.empty()) co_return Status();
  // Degraded: one more fault must still be harmless.
  if (shards.stored.size() < size_t{manifest.data_shards} + 1) {
    for (const TargetId target : failed) parts_.targets.Suspect(target);
    co_return Status(Code::kUnavailable, failure.ToString());
  }
  ++parts_.stats.stripes_degraded;
  co_return Status();
}

Task<Status> StripeWriter::SyncAll(const Manifest& manifest, const Shards& shards) {
  std::vector<std::pair<TargetId, Task<Status>>> calls;
  for (const TargetId target : shards.stored) {
    TargetPort* port = parts_.targets.Find(target);
    if (port != nullptr) calls.emplace_back(target, port->Sync());
  }
  uint32_t synced = 0;
  std::vector<TargetId> failed;
  Status failure(Code::kUnavailable, "a target is not there any more");
  for (auto& [target, call] : calls) {
    Status outcome = co_await call;
    parts_.targets.Note(target, outcome);
    if (outcome.ok()) {
      ++synced;
    } else {
      failed.push_back(target);
      failure = std::move(outcome);
    }
  }
  const uint32_t needed =
      std::min<uint32_t>(manifest.shard_count(), uint32_t{manifest.data_shards} + 1);
  if (synced >= needed) co_return Status();
  for (const TargetId target : failed) parts_.targets.Suspect(target);
  co_return failure;
}

bool StripeWriter::IsInFlight(StripeId stripe) const {
  return std::find(in_flight_.begin(), in_flight_.end(), stripe) != in_flight_.end();
}

}  // namespace cairn::kv
