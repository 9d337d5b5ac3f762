// Plans a stripe, fills its shards, appends them all at once and publishes when they are there.
#include "kvstore/client/stripe_writer.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

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

// Its bytes may be needed when their owner has them back.
void CopyLater(ShardSource& source, uint32_t shard_size) {
  if (source.direct == nullptr) return;
  source.copies.push_back({.to = 0, .from = ByteSpan(source.direct, shard_size)});
  source.direct = nullptr;
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

struct StripeWriter::Appending {
  explicit Appending(Manifest planned) : manifest(std::move(planned)) {
    outcomes.resize(manifest.shard_count());
  }

  // These are on their way from now on.
  void Begin(Loop& loop, const std::vector<uint8_t>& shards) {
    enough.emplace(loop);
    for (const uint8_t i : shards) {
      outcomes[i].reset();
      ++(slow[i] ? late : awaited);
    }
  }
  void End(uint8_t shard, Status outcome) {
    if (outcome.ok()) ++stored;
    outcomes[shard] = std::move(outcome);
    --(slow[shard] ? late : awaited);
    const bool may_leave = late <= manifest.parity_shards / 2U && stored > manifest.data_shards;
    if (awaited == 0 && (late == 0 || may_leave)) enough->Set();
  }
  // Of the shards whose appends have ended.
  std::vector<uint8_t> WithoutRoom() const {
    return Where([](Code code) { return code == Code::kNoSpace; });
  }
  std::vector<uint8_t> Failed() const {
    return Where([](Code code) { return code != Code::kOk; });
  }
  std::vector<uint8_t> Stored() const {
    return Where([](Code code) { return code == Code::kOk; });
  }

  Manifest manifest;
  std::vector<bool> slow;  // By shard: may be left behind; its bytes lie in `buffer`.
  BufferPool::Buffer buffer;
  std::vector<ShardPayload> payloads;           // One per shard.
  std::vector<std::optional<Status>> outcomes;  // Nothing: on its way.
  uint32_t stored = 0;
  uint32_t awaited = 0;  // On their way, besides slow ones.
  uint32_t late = 0;     // Slow ones on their way.
  std::optional<Event> enough;  // The put goes on.
  enum class Fate : uint8_t { kOpen, kPublished, kDropped } fate = Fate::kOpen;

 private:
  template <typename Predicate>
  std::vector<uint8_t> Where(Predicate is_wanted) const {
    std::vector<uint8_t> shards;
    for (uint8_t i = 0; i < outcomes.size(); ++i) {
      if (outcomes[i] && is_wanted(outcomes[i]->code())) shards.push_back(i);
    }
    return shards;
  }
};

StripeWriter::StripeWriter(WriterParts parts, PaceOptions pace, uint64_t buffer_bytes_max,
                           uint64_t shard_size_max)
    : parts_(parts), shard_size_max_(shard_size_max), pace_(pace),
      buffers_(parts.loop, buffer_bytes_max, parts.network), appends_(parts.loop) {}

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
  const auto appending = std::make_shared<Appending>(std::move(planned).value());
  const Manifest& manifest = appending->manifest;
  appending->slow = FindSlow(manifest);
  std::vector<Parts> blocks;
  for (const BlockWrite& block : order.blocks) blocks.push_back(PartsOf(block));
  std::vector<ShardSource> sources = SourcesOf(layout, blocks);
  for (size_t i = 0; i < sources.size(); ++i) {
    if (appending->slow[i]) CopyLater(sources[i], layout.shard_size);
  }
  const auto copied = std::count_if(sources.begin(), sources.end(),
                                    [](const ShardSource& one) { return one.direct == nullptr; });
  const uint64_t strides = static_cast<uint64_t>(copied) + manifest.parity_shards;
  appending->buffer =
      co_await buffers_.Take(std::max<uint64_t>(1, strides) * StrideOf(layout.shard_size));
  std::function<void()> fill = [&] { Fill(order, layout, sources, *appending); };
  co_await RunFor(layout.payload, parts_.workers, std::move(fill));
  KV_CO_RETURN_IF_ERROR(CheckBytes(order, manifest));
  in_flight_.push_back(manifest.stripe);
  Status outcome = co_await Commit(order, appending);
  std::erase(in_flight_, manifest.stripe);
  co_return outcome;
}

std::vector<bool> StripeWriter::FindSlow(const Manifest& manifest) const {
  std::vector<bool> slow;
  for (const TargetId target : manifest.targets) {
    slow.push_back(pace_.IsSlow(target) || parts_.targets.IsSlow(target));
  }
  const auto count = static_cast<size_t>(std::count(slow.begin(), slow.end(), true));
  // Nobody may be left behind, or more are slow than a stripe bears. And where a crash makes a
  // stripe of shards that are found, one that comes late may bring back what was deleted meanwhile.
  const bool none = manifest.parity_shards < 2 || count > manifest.parity_shards ||
                    parts_.placement.RecoversFromShards();
  if (none) slow.assign(slow.size(), false);
  return slow;
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
                        const std::vector<ShardSource>& sources, Appending& appending) {
  Manifest& manifest = appending.manifest;
  const MutableByteSpan scratch = appending.buffer.span();
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
    appending.payloads.push_back({bytes[i], checksums[i] ? *checksums[i] : Checksum(bytes[i])});
  }
}

Task<Status> StripeWriter::Commit(const StripeOrder& order,
                                  std::shared_ptr<Appending> appending) {
  const Manifest& manifest = appending->manifest;
  Status outcome = co_await AppendAll(appending);
  if (outcome.ok() && order.ack == Ack::kDurable) outcome = co_await SyncAll(*appending);
  if (outcome.ok()) {
    outcome = co_await Publish(order, manifest);
    if (outcome.ok()) {
      appending->fate = Appending::Fate::kPublished;
      ++parts_.stats.stripes_written;
      parts_.stats.shards_late += appending->late;
      if (!appending->Failed().empty()) parts_.index.NoteLacking(manifest.stripe);
      co_return outcome;
    }
    // Whether it is filed nobody knows. Its shards stay, and are reaped when no home has it.
    if (!IsRefused(outcome)) co_return Status(Code::kUnavailable, outcome.ToString());
  }
  appending->fate = Appending::Fate::kDropped;
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

Task<void> StripeWriter::AppendOne(std::shared_ptr<Appending> appending, uint8_t shard) {
  const Manifest& manifest = appending->manifest;
  const ShardIndex index{shard};
  const TargetId target = manifest.targets[shard];
  TargetPort* port = parts_.targets.Find(target);
  if (port == nullptr) {  // It left the cluster since it was chosen.
    appending->End(shard, Status(Code::kUnavailable, "a target is not there any more"));
    co_return;
  }
  const Instant began = parts_.clock.Now();
  pace_.Begin(target, began);
  Status outcome = co_await port->Append(manifest, index, appending->payloads[shard]);
  const Instant ended = parts_.clock.Now();
  const bool stored = outcome.ok();
  if (stored) {
    pace_.End(target, manifest.shard_size, ended - began, ended);
  } else {
    pace_.Fail(target, ended);
  }
  parts_.targets.Note(target, outcome);
  appending->End(shard, std::move(outcome));
  // Whom nobody waited for any more.
  if (!stored && appending->fate == Appending::Fate::kPublished) {
    parts_.index.NoteLacking(manifest.stripe);
  } else if (stored && appending->fate == Appending::Fate::kDropped) {
    (void)co_await port->Drop(manifest.stripe);
  }
}

Task<Status> StripeWriter::AppendAll(std::shared_ptr<Appending> appending) {
  const Manifest& manifest = appending->manifest;
  std::vector<uint8_t> missing(manifest.shard_count());
  std::iota(missing.begin(), missing.end(), uint8_t{0});
  for (uint32_t attempt = 0; attempt < kRoomAttempts; ++attempt) {
    appending->Begin(parts_.loop, missing);
    for (const uint8_t i : missing) appends_.Hold(AppendOne(appending, i));
    Event& enough = *appending->enough;
    co_await enough;
    missing = appending->WithoutRoom();
    if (missing.empty()) break;
    Status room = co_await parts_.keeper.MakeRoom(manifest.shard_size);
    if (!room.ok()) co_return room;
  }
  if (missing.size() > manifest.parity_shards) {
    co_return Status(Code::kOverloaded, "space does not come free fast enough");
  }
  // A few targets without room where the others have it are broken, not full.
  const std::vector<uint8_t> failed = appending->Failed();
  if (failed.empty()) co_return Status();
  // Degraded: one more fault must still be harmless.
  if (appending->stored <= manifest.data_shards) {
    for (const uint8_t i : failed) parts_.targets.Suspect(manifest.targets[i]);
    co_return Status(Code::kUnavailable, appending->outcomes[failed.back()]->ToString());
  }
  ++parts_.stats.stripes_degraded;
  co_return Status();
}

Task<Status> StripeWriter::SyncAll(const Appending& appending) {
  const Manifest& manifest = appending.manifest;
  std::vector<std::pair<TargetId, Task<Status>>> calls;
  for (const uint8_t i : appending.Stored()) {
    TargetPort* port = parts_.targets.Find(manifest.targets[i]);
    if (port != nullptr) calls.emplace_back(manifest.targets[i], port->Sync());
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
