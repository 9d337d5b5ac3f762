// Reads blocks through memory: hot ones from the cache, the others once for all who ask meanwhile.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "kvstore/async/event.h"
#include "kvstore/cache/block_cache.h"
#include "kvstore/client/block_store.h"
#include "kvstore/client/scatter.h"
#include "kvstore/client/stripe_reader.h"

namespace cairn::kv {

// Loop thread only. Everything passed in must outlive it.
class BlockReader {
 public:
  BlockReader(ReaderParts parts, ReaderLimits limits, BlockCacheOptions cache);

  // Fills the segments, in order, with the block's bytes, exact, or fails like
  // StripeReader::ReadBlock; then what they hold means nothing. They have room for the block, and
  // are not written to after the task is done. One aligned segment is filled without a copy by the
  // call that reads; calls for the same block that come meanwhile wait for it and get copies.
  Task<Status> Read(KnownStripePtr stripe, uint32_t block, Segments into, Instant deadline);

  // The block where it is in memory; null when it is not.
  LentBlock Lend(StripeId stripe, uint32_t block);
  // Whether a read of the block would not need the targets now.
  bool IsInMemory(StripeId stripe, uint32_t block) const { return cache_.Holds({stripe, block}); }

  // The stripe is gone: its room in the cache is free.
  void Forget(StripeId stripe) { cache_.Drop(stripe); }

  // As StripeReader::Stop.
  Task<void> Stop() { return reader_.Stop(); }

  StripeReader& stripes() { return reader_; }
  const StripeReader& stripes() const { return reader_; }
  uint64_t memory_bytes() const {
    return reader_.memory_bytes() + gathers_.memory_bytes() + cache_.memory_bytes();
  }

 private:
  // A call that waits for another's read of the same block.
  struct Rider {
    Segments into;
    bool filled = false;
  };
  struct Flight {
    explicit Flight(Loop& loop) : done(loop) {}
    Event done;
    Status outcome;
    std::vector<Rider*> riders;  // Each takes itself off, or is filled before `done`.
  };

  bool ReadCached(const BlockCache::Key& key, Segments into);
  void CountCacheUse();
  Task<Status> Lead(KnownStripePtr stripe, uint32_t block, Segments into, Instant deadline);
  Task<void> Ride(Flight& flight, Rider& rider, Instant deadline);
  // The bytes are there and right: for the riders, and perhaps for the cache.
  void Share(const BlockCache::Key& key, const ManifestBlock& block, ByteSpan bytes,
             Flight& flight);

  Loop& loop_;
  Clock& clock_;
  StoreStats& stats_;
  StripeReader reader_;
  BufferPool gathers_;  // Blocks that go to scattered memory. Not the reader's own pool.
  BlockCache cache_;
  std::map<BlockCache::Key, std::shared_ptr<Flight>> flights_;
};

}  // namespace cairn::kv
