// A store of immutable blocks under keys: the coroutine interface, used on the store's own loop.
//
// A block that was put and has neither expired nor been evicted is returned exact, or not at all:
// with up to m shards of its stripe missing or damaged it is rebuilt; beyond that it is a miss.
// Loop thread only; kvstore/client/client.h is the thread-safe face.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kvstore/async/task.h"
#include "kvstore/base/bytes.h"
#include "kvstore/base/result.h"
#include "kvstore/base/time.h"
#include "kvstore/types/ids.h"
#include "kvstore/types/limits.h"
#include "kvstore/types/manifest.h"

namespace cairn::kv {

struct NamespaceOptions {
  std::string name = {};         // 1 to 128 bytes.
  std::string fingerprint = {};  // Of the layout; up to 4 KiB. Part of the namespace id.
  uint8_t data_shards = 10;
  uint8_t parity_shards = 2;
  uint32_t run_blocks = kRunBlocksDefault;  // 1..kStripeBlocksMax.
  RetentionKind retention = RetentionKind::kRefreshed;
  uint32_t ttl_seconds = 3 * 24 * 3600;  // The class `agent`.
};

enum class MissReason : uint8_t { kNone, kAbsent, kExpired, kEvicted, kUnavailable };

// What Lookup says of a chain: its longest restorable prefix.
struct ChainHit {
  uint32_t blocks = 0;                  // Restorable, counted from the chain's first.
  MissReason miss = MissReason::kNone;  // Why the next one is not. kNone when all are there.
  std::vector<uint32_t> sizes;          // Bytes of each restorable block.
  Nanos load_estimate;                  // To read all of them, from recent reads.
};

// One block of a Get. `into` holds at least the block's size. It is filled without a copy when its
// address is sector-aligned and its length is at least the size rounded up to whole sectors (the
// bytes from size up to there are then scratch); otherwise through one copy.
struct BlockRead {
  BlockId id;
  MutableByteSpan into;
};

struct BlockReadResult {
  Status status;      // kNotFound, kUnavailable, kDeadline, kInvalid (`into` is too small).
  uint32_t size = 0;  // Bytes filled when ok. On failure the content of `into` means nothing.
};

// One block of a Put. The memory is the caller's until the task is done.
struct BlockWrite {
  BlockId id;
  ByteSpan bytes;  // 1..kBlockSizeMax.
};

enum class Ack : uint8_t { kCached, kDurable };

// Blocks of one chain, in order; `first` is the chain position of the first. `chain` holds the ids
// from the chain's start at least up to the last block's, so that runs can be told.
struct ChainPut {
  NamespaceId space;
  std::vector<BlockId> chain = {};
  uint32_t first = 0;
  std::vector<BlockWrite> blocks = {};
  Ack ack = Ack::kCached;
  std::optional<uint32_t> ttl_seconds = {};  // None: the namespace's.
};

class BlockStore {
 public:
  virtual ~BlockStore() = default;

  // Creates the namespace, or attaches to it. kConflict when the name exists with another
  // fingerprint or shape (the message shows both); kInvalid for bad options.
  virtual Task<Result<NamespaceId>> Attach(NamespaceOptions options) = 0;

  // One index read per run. A hit refreshes recency and, by class, expiry.
  virtual Task<Result<ChainHit>> Lookup(NamespaceId space, std::vector<BlockId> chain) = 0;

  // Reads blocks that are in the first `chain_blocks` of the chain, each with its own result.
  // `chain` as in Lookup; reads name blocks of it.
  virtual Task<std::vector<BlockReadResult>> Get(NamespaceId space, std::vector<BlockId> chain,
                                                 std::vector<BlockRead> reads,
                                                 Instant deadline) = 0;

  // Stores the blocks that are not there yet; the first writer of an id wins. Per-block status, in
  // order. Ok: visible to every later Lookup, and lost only beyond m faults. After a failure the
  // block may turn up or not, never with wrong bytes. kOverloaded: too much in flight.
  virtual Task<std::vector<Status>> Put(ChainPut put) = 0;

  // Removes blocks' stripes wholly: other blocks put together with them go too (a cache may).
  virtual Task<Status> Delete(NamespaceId space, std::vector<BlockId> chain, uint32_t first) = 0;
};

}  // namespace cairn::kv
