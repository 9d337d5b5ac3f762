// Reads blocks of a stripe that lacks shards together, where each alone would read more.
#include <algorithm>
#include <functional>
#include <utility>

#include "erasure/codec.h"
#include "kvstore/client/stripe_reader.h"

namespace cairn::kv {

// Shared by the calls for its blocks and by the one task that reads for them.
struct StripeReader::Joint {
  Joint(Loop& loop, KnownStripePtr held) : stripe(std::move(held)), done(loop) {}

  const KnownStripePtr stripe;
  std::vector<BlockPlan> plans;  // Of each block.
  Instant deadline;              // The latest of theirs.
  Event done;                    // It is read, or will not be.
  bool is_read = false;
  ShardRange range;           // That all blocks lie in.
  BufferPool::Buffer buffer;  // Of data shard i, at i times the range's size.
};

bool StripeReader::IsAtHand(const Manifest& manifest, uint8_t shard) const {
  const TargetPort* port = targets_.Find(manifest.targets[shard]);
  return port != nullptr && port->MayHold(manifest.stripe, {shard});
}

bool StripeReader::LacksData(const Manifest& manifest) const {
  if (manifest.blocks.size() < 2) return false;
  for (uint8_t i = 0; i < manifest.data_shards; ++i) {
    if (!IsAtHand(manifest, i)) return true;
  }
  return false;
}

Task<bool> StripeReader::ReadJointly(KnownStripePtr stripe, const Reading& reading,
                                     MutableByteSpan into) {
  std::shared_ptr<Joint> joint = joints_[reading.manifest.stripe];
  if (joint == nullptr) {
    joint = std::make_shared<Joint>(loop_, std::move(stripe));
    joints_[reading.manifest.stripe] = joint;
    stragglers_.Hold(RunJoint(joint));
  }
  joint->plans.push_back(reading.plan);
  joint->deadline = std::max(joint->deadline, reading.deadline);
  Event& done = joint->done;
  if (reading.deadline == kNever) {
    co_await done;
  } else {
    co_await clock_.SleepUntil(reading.deadline, &done);
  }
  if (!joint->is_read) co_return false;
  const uint32_t shard_bytes = joint->range.size();
  for (const Piece& piece : reading.plan.pieces) {
    const auto from = joint->buffer.span().subspan(
        uint64_t{piece.shard.value} * shard_bytes + piece.shard_offset - joint->range.begin,
        piece.size);
    std::copy(from.begin(), from.end(),
              into.begin() + static_cast<std::ptrdiff_t>(piece.block_offset));
  }
  const uint64_t checksum = co_await ChecksumOn(workers_, into.first(reading.block.size));
  if (checksum != reading.block.checksum) co_return false;
  ++stats_.degraded_reads;
  co_return true;
}

Task<void> StripeReader::RunJoint(std::shared_ptr<Joint> joint) {
  co_await loop_.Yield();
  joints_.erase(joint->stripe->manifest.stripe);
  std::vector<Piece> pieces;
  for (const BlockPlan& plan : joint->plans) {
    pieces.insert(pieces.end(), plan.pieces.begin(), plan.pieces.end());
  }
  joint->range = RangeOf(pieces);
  if (IsLess(*joint)) joint->is_read = co_await ReadRange(*joint);
  joint->done.Set();
}

bool StripeReader::IsLess(const Joint& joint) const {
  const Manifest& manifest = joint.stripe->manifest;
  uint64_t alone = 0;
  for (const BlockPlan& plan : joint.plans) alone += BytesAlone(manifest, plan);
  const uint64_t shard_bytes = joint.range.size();
  return manifest.data_shards * shard_bytes < alone &&
         manifest.shard_count() * shard_bytes <= rebuilds_.largest();
}

uint64_t StripeReader::BytesAlone(const Manifest& manifest, const BlockPlan& plan) const {
  std::vector<Piece> lost;
  for (const Piece& piece : plan.pieces) {
    if (!IsAtHand(manifest, piece.shard.value)) lost.push_back(piece);
  }
  const ShardRange range = lost.empty() ? ShardRange() : RangeOf(lost);
  uint64_t bytes = lost.empty() ? 0 : uint64_t{manifest.data_shards} * range.size();
  for (const Piece& piece : plan.pieces) {
    if (!IsAtHand(manifest, piece.shard.value)) continue;
    bytes += piece.sectors_size();
    if (!lost.empty() && Covers(piece, range)) bytes -= range.size();
  }
  return bytes;
}

Task<bool> StripeReader::ReadRange(Joint& joint) {
  const Manifest& manifest = joint.stripe->manifest;
  const uint64_t shard_bytes = joint.range.size();
  joint.buffer = co_await rebuilds_.Take(manifest.shard_count() * shard_bytes);
  const MutableByteSpan memory = joint.buffer.span();
  Survivors survivors{.range = joint.range, .found = {}, .tried = {}};
  survivors.tried.assign(manifest.shard_count(), false);
  co_await GatherSurvivors(manifest, joint.deadline, memory, survivors);
  const auto codec =
      erasure::Codec::Create({.data_shards = manifest.data_shards,
                              .parity_shards = manifest.parity_shards,
                              .code = static_cast<erasure::CodeId>(manifest.code_id)});
  if (survivors.found.size() < manifest.data_shards || !codec) co_return false;
  std::vector<erasure::Survivor> given;
  std::vector<bool> has(manifest.shard_count(), false);
  for (const Survivor& survivor : survivors.found) {
    given.push_back({survivor.shard.value, survivor.bytes});
    has[survivor.shard.value] = true;
  }
  std::vector<erasure::Wanted> wanted;
  for (uint8_t i = 0; i < manifest.data_shards; ++i) {
    if (!has[i]) wanted.push_back({i, memory.subspan(i * shard_bytes, shard_bytes)});
  }
  bool decoded = false;
  std::function<void()> decode = [&] { decoded = codec->Reconstruct(given, wanted); };
  co_await RunFor(manifest.data_shards * shard_bytes, workers_, std::move(decode));
  co_return decoded;
}

}  // namespace cairn::kv
