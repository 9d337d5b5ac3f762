// One flight per block: who comes first reads, the others ride along.
#include "kvstore/client/block_reader.h"

#include <algorithm>
#include <utility>

namespace cairn::kv {

BlockReader::BlockReader(ReaderParts parts, ReaderLimits limits, BlockCacheOptions cache)
    : loop_(parts.loop),
      clock_(parts.clock),
      stats_(parts.stats),
      reader_(parts, limits),
      gathers_(parts.loop, limits.copy_bytes_max, parts.network),
      cache_(cache) {}

Task<Status> BlockReader::Read(KnownStripePtr stripe, uint32_t block, Segments into,
                               Instant deadline) {
  const ManifestBlock wanted = stripe->manifest.blocks[block];
  KV_CHECK(SizeOf(into) >= wanted.size);
  const BlockCache::Key key{stripe->manifest.stripe, block};
  while (true) {
    if (ReadCached(key, into)) co_return Status();
    const auto found = flights_.find(key);
    if (found == flights_.end()) co_return co_await Lead(std::move(stripe), block, into, deadline);
    const std::shared_ptr<Flight> flight = found->second;
    ++stats_.shared_reads;
    Rider rider{.into = into};
    co_await Ride(*flight, rider, deadline);
    // The leader's memory is its caller's, who may have written to it: what was copied is verified.
    if (rider.filled && ChecksumOf(into, wanted.size) == wanted.checksum) co_return Status();
    if (clock_.Now() >= deadline) co_return Status(Code::kDeadline);
    const bool same_for_us = !flight->outcome.ok() && flight->outcome.code() != Code::kDeadline;
    if (same_for_us) co_return flight->outcome;
  }
}

bool BlockReader::ReadCached(const BlockCache::Key& key, Segments into) {
  const BlockCache::Block* cached = cache_.Find(key);
  CountCacheUse();
  if (cached == nullptr) return false;
  ForEachPart(into, cached->size(), [&](uint64_t offset, MutableByteSpan part) {
    cache_.CopyOut(*cached, offset, part);
  });
  return true;
}

LentBlock BlockReader::Lend(StripeId stripe, uint32_t block) {
  if (!IsInMemory(stripe, block)) return nullptr;
  LentBlock lent = cache_.Lend({stripe, block});
  CountCacheUse();
  return lent;
}

void BlockReader::CountCacheUse() {
  stats_.cache_hits = cache_.stats().hits;
  stats_.cache_misses = cache_.stats().misses;
  stats_.cache_hit_bytes = cache_.stats().hit_bytes;
}

Task<void> BlockReader::Ride(Flight& flight, Rider& rider, Instant deadline) {
  flight.riders.push_back(&rider);
  Event& done = flight.done;
  if (deadline == kNever) {
    co_await done;
  } else {
    co_await clock_.SleepUntil(deadline, &done);
  }
  std::erase(flight.riders, &rider);
}

Task<Status> BlockReader::Lead(KnownStripePtr stripe, uint32_t block, Segments into,
                               Instant deadline) {
  const ManifestBlock wanted = stripe->manifest.blocks[block];
  const BlockCache::Key key{stripe->manifest.stripe, block};
  const auto flight = std::make_shared<Flight>(loop_);
  flights_.emplace(key, flight);
  BufferPool::Buffer gathered;
  MutableByteSpan memory = into[0];
  if (into.size() > 1) {
    gathered = co_await gathers_.Take(AlignUp(wanted.size, kSectorSize));
    memory = gathered.span();
  }
  flight->outcome = co_await reader_.ReadBlock(std::move(stripe), block, memory, deadline);
  flights_.erase(key);
  if (flight->outcome.ok()) {
    const ByteSpan bytes = memory.first(wanted.size);
    if (into.size() > 1) Scatter(bytes, into);
    Share(key, wanted, bytes, *flight);
  }
  flight->done.Set();
  co_return flight->outcome;
}

void BlockReader::Share(const BlockCache::Key& key, const ManifestBlock& block, ByteSpan bytes,
                        Flight& flight) {
  bool wanted = cache_.Wants(key, block.size);
  for (Rider* rider : flight.riders) {
    wanted = cache_.Wants(key, block.size) || wanted;
    Scatter(bytes, rider->into);
    rider->filled = true;
  }
  if (wanted) cache_.Fill(key, bytes, block.checksum);
}

}  // namespace cairn::kv
