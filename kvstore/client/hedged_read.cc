// Reads into memory of the store: what is late is rebuilt beside it, and the first result wins.
#include <algorithm>
#include <utility>

#include "kvstore/base/checksum.h"
#include "kvstore/client/stripe_reader.h"

namespace cairn::kv {
namespace {

constexpr int kHedgeAttempts = 4;

}  // namespace

// Shared by the call and by what it started: whoever is last frees it.
struct StripeReader::Landing {
  Landing(Loop& loop, KnownStripePtr held, Reading first, BufferPool::Buffer memory)
      : stripe(std::move(held)),
        buffer(std::move(memory)),
        reading(std::move(first)),
        pending(reading.plan.pieces.size()),
        arrived(pending, false),
        hedged(pending, false),
        all_in(loop),
        decided(loop) {
    reading.outcomes.resize(pending);
  }

  // Into the caller's memory, piece by piece: where one is late, the device may still write.
  void CopyTo(MutableByteSpan into) const {
    for (size_t i = 0; i < reading.plan.pieces.size(); ++i) {
      const Piece& piece = reading.plan.pieces[i];
      const auto from = (hedged[i] ? beside : reading.memory).subspan(piece.block_offset);
      std::copy_n(from.begin(), piece.size,
                  into.begin() + static_cast<std::ptrdiff_t>(piece.block_offset));
    }
  }

  const KnownStripePtr stripe;  // What `reading` refers to.
  BufferPool::Buffer buffer;
  Reading reading;
  MutableByteSpan beside;  // Where a hedge puts what it rebuilds. Empty: none is possible.
  size_t pending;          // Pieces that have neither come nor failed.
  std::vector<bool> arrived;  // Of each piece: it has come or failed.
  std::vector<bool> hedged;   // It is one that the hedge rebuilds.
  bool hedge_won = false;
  Event all_in;   // Nothing is pending.
  Event decided;  // Nothing is pending, or the hedge has won.
};

Task<Status> StripeReader::ReadApart(KnownStripePtr stripe, Reading reading,
                                     MutableByteSpan into) {
  const uint64_t sectors = AlignUp(reading.block.size, kSectorSize);
  const bool can_hedge = limits_.hedge_percent > 0 && 2 * sectors <= copies_.largest();
  BufferPool::Buffer buffer = co_await copies_.Take(can_hedge ? 2 * sectors : sectors);
  MutableByteSpan beside;
  if (can_hedge) beside = buffer.span().subspan(sectors, sectors);
  reading.memory = reading.rebuilt = buffer.span().first(sectors);
  const auto landing = std::make_shared<Landing>(loop_, std::move(stripe), std::move(reading),
                                                 std::move(buffer));
  landing->beside = beside;
  Reading& ours = landing->reading;
  const size_t pieces = ours.plan.pieces.size();
  for (size_t i = 0; i < pieces; ++i) stragglers_.Hold(LandPiece(landing, i));
  co_await Race(landing);
  if (landing->hedge_won && landing->pending > 0) {
    landing->CopyTo(into);
    if (Checksum(into.first(ours.block.size)) == ours.block.checksum) {
      ++stats_.hedges_won;
      co_return Status();
    }
    Event& all_in = landing->all_in;
    co_await all_in;
  }
  if (landing->pending > 0) co_return Status(Code::kDeadline);
  Status outcome = co_await Complete(ours);
  if (outcome.ok()) std::copy_n(ours.memory.begin(), ours.block.size, into.begin());
  co_return outcome;
}

Task<void> StripeReader::LandPiece(std::shared_ptr<Landing> landing, size_t piece) {
  landing->reading.outcomes[piece] = co_await ReadPiece(landing->reading, piece,
                                                         PieceCheck::kByTarget, Pace::kUnknown);
  landing->arrived[piece] = true;
  if (--landing->pending > 0) co_return;
  landing->all_in.Set();
  landing->decided.Set();
}

Task<void> StripeReader::Race(std::shared_ptr<Landing> landing) {
  Nanos late = Pace::kUnknown;
  for (const Piece& piece : landing->reading.plan.pieces) {
    late = std::min(late, pace_.LateAfter(piece.sectors_size()));
  }
  Event& decided = landing->decided;
  const Instant deadline = landing->reading.deadline;
  // Again after a while, where it may not hedge: then only slow ones are late still.
  const bool can_hedge = !landing->beside.empty() && late != Pace::kUnknown;
  for (int attempt = 0; can_hedge && attempt < kHedgeAttempts; ++attempt) {
    co_await clock_.SleepUntil(std::min(clock_.Now() + late, deadline), &decided);
    if (landing->pending == 0 || clock_.Now() >= deadline) break;
    if (MayHedge(*landing)) {
      stragglers_.Hold(Hedge(landing));
      break;
    }
    late = late + late;
  }
  if (deadline == kNever) {
    co_await decided;
  } else {
    co_await clock_.SleepUntil(deadline, &decided);
  }
}

bool StripeReader::MayHedge(const Landing& landing) {
  const Reading& reading = landing.reading;
  const Manifest& manifest = reading.manifest;
  std::vector<Piece> wanted;
  for (size_t i = 0; i < landing.arrived.size(); ++i) {
    if (!landing.arrived[i] || !reading.outcomes[i].ok()) wanted.push_back(reading.plan.pieces[i]);
  }
  if (wanted.size() > manifest.parity_shards) return false;
  // Were these targets lost, as much would be read for every block, and is provided for.
  const bool as_if_lost =
      pace_.FewAreSlow() && std::all_of(wanted.begin(), wanted.end(), [&](const Piece& piece) {
        return pace_.IsSlow(manifest.targets[piece.shard.value]);
      });
  if (as_if_lost) return true;
  const ShardRange range = RangeOf(wanted);
  uint64_t shards = manifest.data_shards;
  for (size_t i = 0; i < landing.arrived.size(); ++i) {
    const bool here = landing.arrived[i] && reading.outcomes[i].ok();
    if (here && Covers(reading.plan.pieces[i], range)) --shards;
  }
  return budget_.Spend(shards * range.size());
}

Task<void> StripeReader::Hedge(std::shared_ptr<Landing> landing) {
  ++stats_.hedges;
  Reading hedge = landing->reading;
  hedge.rebuilt = landing->beside;
  for (size_t i = 0; i < landing->arrived.size(); ++i) {
    if (!landing->arrived[i]) hedge.outcomes[i] = Status(Code::kDeadline, "late");
    landing->hedged[i] = !hedge.outcomes[i].ok();
  }
  const Status rebuilt = co_await Rebuild(hedge);
  if (!rebuilt.ok()) co_return;
  landing->hedge_won = true;
  landing->decided.Set();
}

}  // namespace cairn::kv
