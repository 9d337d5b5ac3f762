// Healthy reads land in place; failed pieces are decoded from the same range of other shards.
#include "kvstore/client/stripe_reader.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "erasure/codec.h"
#include "kvstore/base/checksum.h"

namespace cairn::kv {
namespace {

constexpr Nanos kForever = Pace::kUnknown;
// A piece that is so many times late is given up, and not sooner than this: what has begun to come
// would be thrown away.
constexpr int64_t kPatience = 4;
constexpr Nanos kPatienceMin = Millis(20);

bool IsAligned(MutableByteSpan memory) {
  return reinterpret_cast<uintptr_t>(memory.data()) % kSectorSize == 0;
}

bool AllOk(const std::vector<Status>& outcomes) {
  return std::all_of(outcomes.begin(), outcomes.end(), [](const Status& one) { return one.ok(); });
}

}  // namespace

StripeReader::StripeReader(ReaderParts parts, ReaderLimits limits)
    : loop_(parts.loop),
      clock_(parts.clock),
      workers_(parts.workers),
      targets_(parts.targets),
      stats_(parts.stats),
      limits_(limits),
      pace_(limits.pace),
      budget_(limits.hedge_percent),
      reads_(parts.loop, limits.reads_in_flight_max),
      copies_(parts.loop, limits.copy_bytes_max, parts.network),
      rebuilds_(parts.loop, limits.rebuild_bytes_max, parts.network),
      stragglers_(parts.loop) {}

Task<Status> StripeReader::ReadBlock(KnownStripePtr stripe, uint32_t block, MutableByteSpan into,
                                     Instant deadline) {
  const Manifest& manifest = stripe->manifest;
  const ManifestBlock& wanted = manifest.blocks[block];
  KV_CHECK(into.size() >= wanted.size);
  Reading reading{.manifest = manifest,
                  .block = wanted,
                  .plan = PlanBlock(manifest, block),
                  .memory = into,
                  .rebuilt = into,
                  .deadline = deadline,
                  .outcomes = {}};
  budget_.Earn(wanted.size);
  if (LacksData(manifest)) {
    const bool is_there = co_await ReadJointly(stripe, reading, into);
    if (is_there) co_return Status();
  }
  if (!LandsInPlace(reading, into)) {
    co_return co_await ReadApart(std::move(stripe), std::move(reading), into);
  }
  reading.memory = reading.rebuilt = into.first(AlignUp(wanted.size, kSectorSize));
  co_return co_await ReadInPlace(reading);
}

bool StripeReader::LandsInPlace(const Reading& reading, MutableByteSpan into) const {
  const uint64_t sectors = AlignUp(reading.block.size, kSectorSize);
  if (!limits_.land_in_place || !IsAligned(into) || into.size() < sectors) return false;
  if (limits_.hedge_percent == 0) return true;
  const Instant now = clock_.Now();
  return std::none_of(reading.plan.pieces.begin(), reading.plan.pieces.end(),
                      [&](const Piece& piece) {
                        const TargetId target = reading.manifest.targets[piece.shard.value];
                        return pace_.IsTardy(target, piece.sectors_size(), now);
                      });
}

uint64_t StripeReader::RebuildBytes(const Manifest& manifest, std::span<const Piece> pieces) {
  return pieces.empty() ? 0 : uint64_t{manifest.data_shards} * RangeOf(pieces).size();
}

Nanos StripeReader::PatienceWith(const Piece& piece) const {
  const Nanos late = pace_.LateAfter(piece.sectors_size());
  if (late == Pace::kUnknown) return kForever;
  return std::max(kPatienceMin, Nanos{kPatience * late.value});
}

// A hedge would need the caller's memory while a late read may still write there. So the late read
// is given up instead, and what it was to bring is rebuilt; as often as hedges are allowed.
Task<Status> StripeReader::ReadInPlace(Reading& reading) {
  const std::vector<Piece>& pieces = reading.plan.pieces;
  const bool may_give_up = limits_.hedge_percent > 0 &&
                           budget_.Has(RebuildBytes(reading.manifest, pieces));
  std::vector<Task<Status>> calls;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Nanos patience = may_give_up ? PatienceWith(pieces[i]) : kForever;
    calls.push_back(ReadPiece(reading, i, PieceCheck::kWithBlock, patience));
  }
  std::vector<Piece> late;
  for (size_t i = 0; i < pieces.size(); ++i) {
    Task<Status>& call = calls[i];
    reading.outcomes.push_back(co_await call);
    if (reading.outcomes[i].code() == Code::kDeadline) late.push_back(pieces[i]);
  }
  if (late.empty() || clock_.Now() >= reading.deadline) co_return co_await Complete(reading);
  ++stats_.hedges;
  (void)budget_.Spend(RebuildBytes(reading.manifest, late));
  const bool may_rebuild = late.size() <= reading.manifest.parity_shards;
  if (may_rebuild) {
    const Status outcome = co_await Complete(reading);
    if (outcome.ok()) ++stats_.hedges_won;
    if (outcome.ok() || clock_.Now() >= reading.deadline) co_return outcome;
  }
  co_return co_await ReadPatiently(reading);
}

// What was given up, once more: too many are late, or too few of the others are there.
Task<Status> StripeReader::ReadPatiently(Reading& reading) {
  std::vector<std::pair<size_t, Task<Status>>> calls;
  for (size_t i = 0; i < reading.outcomes.size(); ++i) {
    if (reading.outcomes[i].code() != Code::kDeadline) continue;
    calls.emplace_back(i, ReadPiece(reading, i, PieceCheck::kWithBlock, kForever));
  }
  for (auto& [i, call] : calls) reading.outcomes[i] = co_await call;
  co_return co_await Complete(reading);
}

Task<Status> StripeReader::Complete(Reading& reading) {
  const ByteSpan bytes = reading.memory.first(reading.block.size);
  if (AllOk(reading.outcomes)) {
    const uint64_t checksum = co_await ChecksumOn(workers_, bytes);
    if (checksum == reading.block.checksum) co_return Status();
  }
  if (clock_.Now() >= reading.deadline) co_return Status(Code::kDeadline);
  FailDamaged(reading);
  if (AllOk(reading.outcomes)) co_return Status(Code::kUnavailable, "checksums do not agree");
  ++stats_.degraded_reads;
  Status rebuilt = co_await Rebuild(reading);
  if (rebuilt.code() == Code::kCorrupt) rebuilt = co_await RebuildCarefully(reading);
  if (!rebuilt.ok()) co_return rebuilt;
  const uint64_t checksum = co_await ChecksumOn(workers_, bytes);
  if (checksum == reading.block.checksum) co_return Status();
  co_return Status(Code::kCorrupt, "whole shards do not make up the block");
}

void StripeReader::FailDamaged(Reading& reading) {
  for (size_t i = 0; i < reading.outcomes.size(); ++i) {
    if (!reading.outcomes[i].ok() || PieceIsRight(reading, i)) continue;
    reading.outcomes[i] = Status(Code::kCorrupt);
    Count(reading.outcomes[i]);
  }
}

Task<Status> StripeReader::ReadPiece(const Reading& reading, size_t piece, PieceCheck check,
                                     Nanos patience) {
  const Piece& at = reading.plan.pieces[piece];
  const Semaphore::Permit permit = co_await reads_.Acquire(1);
  if (clock_.Now() >= reading.deadline) co_return Status(Code::kDeadline);
  SegmentLog::Range range{.stripe = reading.manifest.stripe,
                          .index = at.shard,
                          .offset = at.shard_offset,
                          .into = reading.memory.subspan(at.block_offset, at.sectors_size()),
                          .checksum = std::nullopt,
                          .checked_size = 0};
  if (patience != kForever) range.give_up_at = clock_.Now() + patience;
  if (check == PieceCheck::kByTarget) {
    range.checksum = reading.plan.checksums[piece];
    range.checked_size = at.size;
  }
  co_return co_await ReadShard(range, reading.manifest.targets[at.shard.value]);
}

Task<Status> StripeReader::ReadShard(SegmentLog::Range range, TargetId target) {
  TargetPort* port = targets_.Find(target);
  if (port == nullptr) {
    ++stats_.missing_shards;
    co_return Status(Code::kUnavailable, "its target is gone");
  }
  const Instant began = clock_.Now();
  pace_.Begin(target, began);
  Status outcome = co_await port->Read(range);
  const Instant ended = clock_.Now();
  // Given up: it says that the target is late, and not that it is away.
  const bool given_up = outcome.code() == Code::kDeadline && ended >= range.give_up_at;
  if (outcome.ok() || given_up) {
    pace_.End(target, range.into.size(), ended - began, ended);
  } else {
    pace_.Fail(target, ended);
  }
  if (!given_up) targets_.Note(target, outcome);
  Count(outcome);
  co_return outcome;
}

Task<Status> StripeReader::Rebuild(Reading& reading) {
  const Manifest& manifest = reading.manifest;
  std::vector<Piece> failed;
  for (size_t i = 0; i < reading.outcomes.size(); ++i) {
    if (!reading.outcomes[i].ok()) failed.push_back(reading.plan.pieces[i]);
  }
  const ShardRange range = RangeOf(failed);
  const uint64_t places = manifest.shard_count() + uint64_t{manifest.parity_shards};
  if (failed.size() > manifest.parity_shards || places * range.size() > rebuilds_.largest()) {
    co_return TooFew(reading);
  }
  BufferPool::Buffer buffer = co_await rebuilds_.Take(places * range.size());
  Survivors survivors = KnownSurvivors(reading, range);
  co_await GatherSurvivors(manifest, reading.deadline, buffer.span(), survivors);
  if (survivors.found.size() < manifest.data_shards) {
    if (clock_.Now() >= reading.deadline) co_return Status(Code::kDeadline);
    co_return TooFew(reading);
  }
  const MutableByteSpan beside =
      buffer.span().subspan(uint64_t{manifest.shard_count()} * range.size());
  bool decoded = false;
  bool right = false;
  std::function<void()> decode = [&] {
    decoded = Decode(reading, survivors, beside);
    right = decoded && RebuiltAreRight(reading);
  };
  const uint64_t work = uint64_t{manifest.data_shards} * range.size();
  co_await RunFor(work, workers_, std::move(decode));
  if (!decoded) co_return Status(Code::kUnavailable);
  // A survivor was damaged: the read of part of a shard cannot tell which.
  if (!right) co_return Status(Code::kCorrupt);
  co_return Status();
}

Status StripeReader::TooFew(const Reading& reading) const {
  if (targets_.ShardsAtHand(reading.manifest) == 0) return Status(Code::kNotFound, "evicted");
  const bool damaged = std::any_of(reading.outcomes.begin(), reading.outcomes.end(),
                                   [](const Status& one) { return one.code() == Code::kCorrupt; });
  return Status(damaged ? Code::kCorrupt : Code::kUnavailable, "too few shards are left");
}

StripeReader::Survivors StripeReader::KnownSurvivors(const Reading& reading,
                                                     ShardRange range) const {
  Survivors known{.range = range, .found = {}, .tried = {}};
  known.tried.assign(reading.manifest.shard_count(), false);
  for (size_t i = 0; i < reading.outcomes.size(); ++i) {
    const Piece& piece = reading.plan.pieces[i];
    if (!reading.outcomes[i].ok()) {
      known.tried[piece.shard.value] = true;
    } else if (Covers(piece, range)) {
      // It was read and verified just now. (A verified piece has zeroes up to its sector's end.)
      known.tried[piece.shard.value] = true;
      const uint32_t at = piece.block_offset + (range.begin - piece.shard_offset);
      known.found.push_back({piece.shard, reading.memory.subspan(at, range.size())});
    }
  }
  return known;
}

// Those of slow targets last.
std::vector<uint8_t> StripeReader::BySpeed(const Manifest& manifest) const {
  std::vector<uint8_t> shards(manifest.shard_count());
  std::iota(shards.begin(), shards.end(), uint8_t{0});
  std::stable_partition(shards.begin(), shards.end(),
                        [&](uint8_t i) { return !pace_.IsSlow(manifest.targets[i]); });
  return shards;
}

Task<void> StripeReader::GatherSurvivors(const Manifest& manifest, Instant deadline,
                                         MutableByteSpan scratch, Survivors& survivors) {
  const ShardRange range = survivors.range;
  const std::vector<uint8_t> order = BySpeed(manifest);
  std::vector<Survivor>& found = survivors.found;
  while (found.size() < manifest.data_shards && clock_.Now() < deadline) {
    std::vector<std::pair<Survivor, Task<Status>>> calls;
    for (const uint8_t i : order) {
      if (found.size() + calls.size() >= manifest.data_shards) break;
      if (survivors.tried[i]) continue;
      survivors.tried[i] = true;
      if (!IsAtHand(manifest, i)) {
        ++stats_.missing_shards;
        continue;
      }
      const MutableByteSpan into = scratch.subspan(uint64_t{i} * range.size(), range.size());
      SegmentLog::Range part{.stripe = manifest.stripe,
                             .index = {i},
                             .offset = range.begin,
                             .into = into,
                             .checksum = std::nullopt,
                             .checked_size = 0};
      calls.emplace_back(Survivor{{i}, into}, ReadShard(part, manifest.targets[i]));
    }
    if (calls.empty()) break;
    for (auto& [survivor, call] : calls) {
      const Status outcome = co_await call;
      if (outcome.ok()) found.push_back(survivor);
    }
  }
}

bool StripeReader::Decode(Reading& reading, const Survivors& survivors,
                          MutableByteSpan scratch) {
  const ShardRange range = survivors.range;
  const Manifest& manifest = reading.manifest;
  const auto codec =
      erasure::Codec::Create({.data_shards = manifest.data_shards,
                              .parity_shards = manifest.parity_shards,
                              .code = static_cast<erasure::CodeId>(manifest.code_id)});
  if (!codec) return false;
  std::vector<erasure::Survivor> given;
  for (const Survivor& survivor : survivors.found) {
    given.push_back({survivor.shard.value, survivor.bytes});
  }
  std::vector<erasure::Wanted> wanted;
  std::vector<size_t> pieces;
  for (size_t i = 0; i < reading.outcomes.size(); ++i) {
    if (reading.outcomes[i].ok()) continue;
    wanted.push_back({reading.plan.pieces[i].shard.value,
                      scratch.subspan(pieces.size() * range.size(), range.size())});
    pieces.push_back(i);
  }
  if (!codec->Reconstruct(given, wanted)) return false;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = reading.plan.pieces[pieces[i]];
    const auto from = wanted[i].bytes.subspan(piece.shard_offset - range.begin);
    std::copy_n(from.begin(), piece.size,
                reading.rebuilt.begin() + static_cast<ptrdiff_t>(piece.block_offset));
  }
  return true;
}

Task<Status> StripeReader::RebuildCarefully(Reading& reading) {
  const Manifest& manifest = reading.manifest;
  const ShardRange whole{0, manifest.shard_size};
  const size_t pieces = reading.plan.pieces.size();
  const uint64_t places = manifest.shard_count() + uint64_t{manifest.parity_shards};
  if (places * manifest.shard_size > rebuilds_.largest()) co_return Status(Code::kUnavailable);
  BufferPool::Buffer buffer = co_await rebuilds_.Take(places * manifest.shard_size);
  if (clock_.Now() >= reading.deadline) co_return Status(Code::kDeadline);
  std::vector<Task<Status>> calls;
  for (uint8_t i = 0; i < manifest.shard_count(); ++i) {
    const MutableByteSpan into =
        buffer.span().subspan(uint64_t{i} * whole.size(), manifest.shard_size);
    calls.push_back(VerifyShard(manifest.stripe, {i}, manifest.targets[i], into));
  }
  Survivors survivors{.range = whole, .found = {}, .tried = {}};
  std::vector<bool> good(manifest.shard_count(), false);
  uint32_t lost = 0;  // For good: damaged, or not there.
  for (uint8_t i = 0; i < manifest.shard_count(); ++i) {
    Task<Status>& call = calls[i];
    const Status outcome = co_await call;
    good[i] = outcome.ok();
    if (outcome.code() == Code::kCorrupt || outcome.code() == Code::kNotFound) ++lost;
    const MutableByteSpan bytes =
        buffer.span().subspan(uint64_t{i} * whole.size(), manifest.shard_size);
    if (good[i]) survivors.found.push_back({{i}, bytes});
  }
  if (survivors.found.size() < manifest.data_shards) {
    const bool for_good = lost > manifest.parity_shards;
    co_return Status(for_good ? Code::kCorrupt : Code::kUnavailable,
                     "more shards are damaged than parity can replace");
  }
  for (size_t i = 0; i < pieces; ++i) {
    const Piece& piece = reading.plan.pieces[i];
    reading.outcomes[i] = Status(good[piece.shard.value] ? Code::kOk : Code::kCorrupt);
    if (!good[piece.shard.value]) continue;
    const auto from = buffer.span().subspan(
        uint64_t{piece.shard.value} * whole.size() + piece.shard_offset, piece.size);
    std::copy(from.begin(), from.end(),
              reading.memory.begin() + static_cast<ptrdiff_t>(piece.block_offset));
  }
  const MutableByteSpan beside =
      buffer.span().subspan(uint64_t{manifest.shard_count()} * whole.size());
  bool decoded = false;
  std::function<void()> decode = [&] { decoded = Decode(reading, survivors, beside); };
  co_await RunFor(buffer.span().size(), workers_, std::move(decode));
  co_return decoded ? Status() : Status(Code::kUnavailable);
}

Task<Status> StripeReader::VerifyShard(StripeId stripe, ShardIndex shard, TargetId target,
                                       MutableByteSpan into) {
  TargetPort* port = targets_.Find(target);
  if (port == nullptr) co_return Status(Code::kUnavailable, "its target is gone");
  Status outcome = co_await port->ReadVerified(stripe, shard, into);
  Count(outcome);
  co_return outcome;
}

bool StripeReader::RebuiltAreRight(const Reading& reading) {
  for (size_t i = 0; i < reading.outcomes.size(); ++i) {
    if (!reading.outcomes[i].ok() && !PieceIsRight(reading, i)) return false;
  }
  return true;
}

bool StripeReader::PieceIsRight(const Reading& reading, size_t piece) {
  const Piece& at = reading.plan.pieces[piece];
  const bool landed = reading.outcomes[piece].ok();
  const ByteSpan bytes = landed ? reading.memory : reading.rebuilt;
  return Checksum(bytes.subspan(at.block_offset, at.size)) == reading.plan.checksums[piece];
}

void StripeReader::Count(const Status& outcome) {
  if (outcome.ok()) return;
  if (outcome.code() == Code::kCorrupt) {
    ++stats_.corrupt_shards;
  } else {
    ++stats_.missing_shards;
  }
}

}  // namespace cairn::kv
