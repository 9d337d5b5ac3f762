// Verified shards in, lost shards out; the records first, the manifest last.
#include "kvstore/client/stripe_restorer.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "erasure/codec.h"

namespace cairn::kv {

struct StripeRestorer::Work {
  IndexedStripe stripe;
  Manifest manifest;  // As it will be: with other targets where shards move.
  Places bad;
  std::vector<erasure::Survivor> survivors;
  RestoreReport report;
  uint32_t gone = 0;  // Shards that are nowhere.

  uint32_t bad_count() const {
    return static_cast<uint32_t>(std::count(bad.begin(), bad.end(), true));
  }
};

Task<RestoreReport> StripeRestorer::Scrub(FiledStripe filed) {
  return Attend(std::move(filed), Check::kAll);
}

Task<RestoreReport> StripeRestorer::Restore(FiledStripe filed) {
  return Attend(std::move(filed), Check::kPresence);
}

Task<RestoreReport> StripeRestorer::Attend(FiledStripe filed, Check check) {
  Work work{.stripe = std::move(filed.stripe),
            .manifest = {},
            .bad = {},
            .survivors = {},
            .report = {}};
  const StripeId id = work.stripe.manifest.stripe;
  if (!at_work_.insert(id).second) {
    work.report.failed = 1;  // By this call, so that nobody takes it for done.
    work.report.status = Status(Code::kUnavailable, "another pass is at the stripe");
    co_return work.report;
  }
  work.manifest = work.stripe.manifest;
  co_await FindMissing(work);
  if (check == Check::kAll) {
    co_await Verify(work);
  } else {
    work.report.checked = work.manifest.shard_count();
  }
  KeepStuck(work);
  if (work.bad_count() > 0) co_await RestoreBad(work);
  if (filed.uneven && work.manifest.generation == work.stripe.manifest.generation) {
    work.report.status = co_await parts_.index.Republish(work.stripe);
  }
  at_work_.erase(id);
  co_return std::move(work.report);
}

Task<void> StripeRestorer::FindMissing(Work& work) {
  const Manifest& manifest = work.manifest;
  const std::vector<Status> shards = co_await parts_.targets.AskShards(manifest);
  work.bad.assign(manifest.shard_count(), false);
  for (uint8_t i = 0; i < manifest.shard_count(); ++i) {
    const bool is_there = parts_.targets.Find(manifest.targets[i]) != nullptr;
    const bool is_gone = !is_there || shards[i].code() == Code::kNotFound;
    if (is_gone) ++work.gone;
    work.bad[i] = is_gone || parts_.placement.IsLeaving(manifest.targets[i]);
    if (!work.bad[i] && !shards[i].ok()) ++work.report.unknown;
  }
}

void StripeRestorer::KeepStuck(Work& work) {
  for (uint8_t i = 0; i < work.manifest.shard_count(); ++i) {
    if (!work.bad[i] || ChooseTarget(work, i) != nullptr) continue;
    work.bad[i] = false;
    ++work.report.failed;
    work.report.status = Status(Code::kUnavailable, "no target is left for the shard");
  }
}

Task<void> StripeRestorer::DropMoved(const Work& work) {
  for (const TargetId old : work.stripe.manifest.targets) {
    const std::vector<TargetId>& now = work.manifest.targets;
    TargetPort* port = parts_.targets.Find(old);
    if (port == nullptr || std::find(now.begin(), now.end(), old) != now.end()) continue;
    (void)co_await port->Drop(work.manifest.stripe);  // What stays is reaped later.
  }
}

Task<void> StripeRestorer::Verify(Work& work) {
  const Manifest& manifest = work.stripe.manifest;
  if (manifest.shard_size > parts_.buffers.largest()) co_return;
  BufferPool::Buffer buffer = co_await parts_.buffers.Take(manifest.shard_size);
  const MutableByteSpan into = buffer.span().first(manifest.shard_size);
  for (uint8_t i = 0; i < manifest.shard_count(); ++i) {
    if (work.bad[i]) continue;
    const ShardIndex index{i};
    TargetPort* port = parts_.targets.Find(manifest.targets[i]);
    if (port == nullptr) continue;
    Status verified = co_await port->ReadVerified(manifest.stripe, index, into);
    // An I/O error may be a passing one; one that stays is a sector that cannot be read any more.
    if (verified.code() == Code::kUnavailable) {
      verified = co_await port->ReadVerified(manifest.stripe, index, into);
    }
    // Dropped meanwhile: the stripe is on its way out, or the shard is missing.
    if (verified.code() == Code::kNotFound) continue;
    ++work.report.checked;
    work.report.bytes += manifest.shard_size;
    parts_.stats.scrubbed_bytes += manifest.shard_size;
    if (verified.ok()) continue;
    work.bad[i] = true;
    ++work.report.damaged;
    ++parts_.stats.scrub_damaged;
  }
}

Task<void> StripeRestorer::RestoreBad(Work& work) {
  const Manifest& manifest = work.stripe.manifest;
  const uint64_t size = manifest.shard_size;
  const uint64_t places = manifest.data_shards + uint64_t{manifest.parity_shards};
  const auto codec =
      erasure::Codec::Create({.data_shards = manifest.data_shards,
                              .parity_shards = manifest.parity_shards,
                              .code = static_cast<erasure::CodeId>(manifest.code_id)});
  if (!codec || places * size > parts_.buffers.largest()) {
    work.report.status = Status(Code::kInvalid, "a stripe too large to be restored in memory");
    work.report.failed += work.bad_count();
    co_return;
  }
  BufferPool::Buffer buffer = co_await parts_.buffers.Take(places * size);
  const MutableByteSpan memory = buffer.span();
  co_await GatherWhole(work, memory);
  if (work.survivors.size() < manifest.data_shards) {
    work.report.status = Status(Code::kUnavailable, "too few whole shards are left");
    work.report.failed += work.bad_count();
    const bool can_come_back = work.report.unknown > 0;
    const uint32_t at_most = manifest.shard_count() - uint32_t{manifest.data_shards};
    if (!can_come_back && work.gone > at_most) work.report.lost += work.bad_count();
    parts_.stats.shards_unrestorable += work.bad_count();
    co_return;
  }
  std::vector<erasure::Wanted> wanted;
  uint64_t next = manifest.data_shards * size;
  for (uint8_t i = 0; i < manifest.shard_count(); ++i) {
    if (!work.bad[i]) continue;
    wanted.push_back({i, memory.subspan(next, size)});
    next += size;
  }
  std::function<void()> decode = [&] { KV_CHECK(codec->Reconstruct(work.survivors, wanted)); };
  co_await RunFor(places * size, parts_.workers, std::move(decode));
  std::vector<TargetPort*> ports;
  for (const erasure::Wanted& shard : wanted) {
    ports.push_back(ChooseTarget(work, static_cast<uint8_t>(shard.index)));
    if (ports.back() != nullptr) work.manifest.targets[shard.index] = ports.back()->id();
  }
  const bool moves = work.manifest.targets != manifest.targets;
  if (moves) ++work.manifest.generation;
  uint32_t stored = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto place = static_cast<uint8_t>(wanted[i].index);
    const Status outcome = co_await Store(work, place, wanted[i].bytes, ports[i]);
    if (outcome.ok()) {
      ++stored;
    } else {
      ++work.report.failed;
      work.report.status = outcome;
      work.manifest.targets[place] = manifest.targets[place];  // Not moved.
    }
  }
  if (moves && stored > 0) {
    IndexedStripe filed = work.stripe;
    filed.manifest = work.manifest;
    const Status published = co_await parts_.index.Republish(std::move(filed));
    if (!published.ok()) {
      work.report.status = published;
      work.report.failed += stored;
      co_return;
    }
    co_await DropMoved(work);
  }
  work.report.restored += stored;
  parts_.stats.shards_restored += stored;
}

Task<void> StripeRestorer::GatherWhole(Work& work, MutableByteSpan memory) {
  const Manifest& manifest = work.stripe.manifest;
  const uint64_t size = manifest.shard_size;
  uint8_t next = 0;
  while (work.survivors.size() < manifest.data_shards && next < manifest.shard_count()) {
    std::vector<std::pair<uint8_t, Task<Status>>> calls;
    size_t slot = work.survivors.size();
    std::vector<MutableByteSpan> rooms;
    for (; slot < manifest.data_shards && next < manifest.shard_count(); ++next) {
      TargetPort* port = parts_.targets.Find(manifest.targets[next]);
      if (work.bad[next] || port == nullptr) continue;
      rooms.push_back(memory.subspan(slot++ * size, size));
      calls.emplace_back(next, port->ReadVerified(manifest.stripe, {next}, rooms.back()));
    }
    // Those that fail leave their room to the next round: survivors move up.
    for (size_t i = 0; i < calls.size(); ++i) {
      Task<Status>& call = calls[i].second;
      const Status outcome = co_await call;
      work.report.bytes += size;
      if (outcome.code() == Code::kCorrupt) work.bad[calls[i].first] = true;
      if (!outcome.ok()) continue;
      const MutableByteSpan room = memory.subspan(work.survivors.size() * size, size);
      if (room.data() != rooms[i].data()) std::copy(rooms[i].begin(), rooms[i].end(), room.begin());
      work.survivors.push_back({calls[i].first, room});
    }
  }
}

TargetPort* StripeRestorer::ChooseTarget(const Work& work, uint8_t place) {
  TargetPort* own = parts_.targets.Find(work.stripe.manifest.targets[place]);
  if (own != nullptr && !parts_.placement.IsLeaving(own->id())) return own;
  std::vector<TargetId> barred = work.manifest.targets;
  for (const TargetPort* port : parts_.targets.ports()) {
    // A shard that an interrupted restoration left there may be taken over, any other not.
    if (port->MayHold(work.manifest.stripe, {place})) continue;
    for (uint8_t i = 0; i < work.manifest.shard_count(); ++i) {
      if (port->MayHold(work.manifest.stripe, {i})) barred.push_back(port->id());
    }
  }
  const auto chosen = parts_.placement.ChooseOther(barred, parts_.random);
  return chosen ? parts_.targets.Find(*chosen) : nullptr;
}

Task<Status> StripeRestorer::Store(Work& work, uint8_t place, ByteSpan payload, TargetPort* port) {
  constexpr int kRoomAttempts = 3;
  if (port == nullptr) co_return Status(Code::kUnavailable, "no target is left for the shard");
  const StripeId stripe = work.manifest.stripe;
  const ShardIndex index{place};
  // What is there is damaged: an append beside it would be taken for done.
  if (port->MayHold(stripe, index)) {
    const Status dropped = co_await port->Drop(stripe);
    if (!dropped.ok()) co_return dropped;
  }
  const uint64_t checksum = co_await ChecksumOn(parts_.workers, payload);
  const ShardPayload shard{payload, checksum};
  Status outcome;
  for (int attempt = 0; attempt < kRoomAttempts; ++attempt) {
    outcome = co_await port->Append(work.manifest, index, shard);
    parts_.targets.Note(port->id(), outcome);
    if (outcome.code() != Code::kNoSpace) break;
    const Status room = co_await parts_.keeper.MakeRoom(payload.size());
    if (!room.ok()) co_return room;
  }
  if (!outcome.ok()) co_return outcome;
  work.report.bytes += payload.size();
  const std::vector<StripeId> asked{stripe};
  const std::vector<StripeReport> reports = co_await parts_.index.StatesOf(asked);
  if (reports[0].kind != StripeReport::Kind::kAbsent) co_return Status();
  // Removed meanwhile, perhaps before this shard was there to be dropped with the others.
  (void)co_await port->Drop(stripe);
  co_return Status(Code::kNotFound, "the stripe was removed");
}

}  // namespace cairn::kv
