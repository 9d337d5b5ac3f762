// A store of immutable blocks under keys: the coroutine interface, used on the store's own loop.
//
// A block that was put and has neither expired nor been evicted is returned exact, or not at all:
// with up to m shards of its stripe missing or damaged it is rebuilt; beyond that it is a miss.
// Loop thread only; kvstore/client/client.h is the thread-safe face. What people and operators ask
// (namespaces, targets, scrub, repair) is in store_admin.h.
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
#include "kvstore/types/space_token.h"

namespace cairn::kv {

// Where a namespace's blocks live. kMemory: in DRAM only (the class `window`), lost by a restart.
enum class Medium : uint8_t { kSsd = 0, kMemory = 1 };

struct NamespaceOptions {
  std::string name = {};         // 1 to 128 bytes.
  std::string fingerprint = {};  // Of the layout; up to 4 KiB. Part of the namespace id.
  uint8_t data_shards = 10;
  uint8_t parity_shards = 2;
  uint32_t run_blocks = kRunBlocksDefault;  // 1..kStripeBlocksMax.
  RetentionKind retention = RetentionKind::kRefreshed;
  uint32_t ttl_seconds = 3 * 24 * 3600;  // The class `agent`.
  Medium medium = Medium::kSsd;
  // Of payload stored. 0: none. A namespace at its quota evicts its own oldest; keep_until
  // needs one.
  uint64_t quota_bytes = 0;
  // A secret that every later Attach must know: at least 128 random bits. Empty: anyone may attach.
  std::string token = {};
  std::optional<TokenProof> proof = {};  // In place of `token`, of a client that keeps it.
  bool create = true;  // False: attach only; kNotFound when the name is not there.
};

enum class MissReason : uint8_t { kNone, kAbsent, kExpired, kEvicted, kUnavailable };

// Who holds leases: a connection. 0 is the process that runs the store; it ends with the store.
struct SessionId {
  uint64_t value = 0;
  auto operator<=>(const SessionId&) const = default;
};

// Random, never 0; 0 says: none.
struct LeaseId {
  uint64_t value = 0;
  auto operator<=>(const LeaseId&) const = default;
};

// Asks a lookup for a lease: until it ends the blocks found are not evicted. It ends at its
// deadline, by Release, or with its session; it never outlasts the expiry of a block.
struct LeaseOrder {
  SessionId session = {};
  Nanos duration = {};  // 0: no lease. At most kLeaseSecondsMax.
};

// What Lookup says of a chain: its longest restorable prefix.
struct ChainHit {
  uint32_t blocks = 0;                  // Restorable, counted from the chain's first.
  MissReason miss = MissReason::kNone;  // Why the next one is not. kNone when all are there.
  std::vector<uint32_t> sizes;          // Bytes of each restorable block.
  Nanos load_estimate;                  // To read all of them, from recent reads.
  LeaseId lease = {};                   // 0 when none was asked for, or nothing was found.
  Nanos lease_for = {};                 // From now on.
};

// What LookupEach says of a chain: each block for itself, whatever comes before it.
struct EachHit {
  struct Block {
    uint32_t size = 0;                       // 0: not restorable.
    MissReason miss = MissReason::kNone;     // Why not.
  };
  std::vector<Block> blocks;
  Nanos load_estimate;  // To read all restorable ones.
  LeaseId lease = {};
  Nanos lease_for = {};
};

// One block of a Get. `into` holds at least the block's size. It is filled without a copy when its
// address is sector-aligned and its length is at least the size rounded up to whole sectors (the
// bytes from size up to there are then scratch); otherwise through one copy.
struct BlockRead {
  BlockId id;
  MutableByteSpan into = {};
  // Used instead of `into` when not empty: filled one after another. 1..kScatterMax segments.
  std::vector<MutableByteSpan> scatter = {};
  // A store that has the block in memory may lend it instead of copying it: see BlockReadResult.
  bool may_be_lent = false;
};

// The parts of a block in a store's memory, which stay there until this is dropped. Drop it before
// the store ends.
using LentBlock = std::shared_ptr<const std::vector<ByteSpan>>;

struct BlockReadResult {
  Status status;      // kNotFound, kUnavailable, kDeadline, kInvalid (`into` is too small).
  uint32_t size = 0;  // Bytes filled when ok. On failure the content of `into` means nothing.
  uint64_t checksum = 0;  // XXH3-64 of the block, as it was put, when ok.
  LentBlock lent = {};    // Not null: the bytes, instead of in `into`, which is not filled.
};

// One block of a Put. The memory is the caller's until the task is done.
struct BlockWrite {
  BlockId id;
  ByteSpan bytes = {};  // 1..kBlockSizeMax.
  // Used instead of `bytes` when not empty: the block is these one after another. At most
  // kScatterMax segments.
  std::vector<ByteSpan> gather = {};
  // XXH3-64 that the bytes must have: otherwise nothing of their stripe is stored (kCorrupt).
  std::optional<uint64_t> checksum = {};
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
  std::optional<uint32_t> ttl_seconds = {};      // None: the namespace's.
  std::optional<RetentionKind> retention = {};   // None: the namespace's.
  // Not evicted before; 0: no such promise. Needs a namespace with a quota: the bytes so kept are
  // at most the quota, and kOverloaded refuses what does not fit.
  UnixMillis keep_until = {};
};

class BlockStore {
 public:
  virtual ~BlockStore() = default;

  // Creates the namespace, or attaches to it. kConflict when the name exists with another
  // fingerprint or shape (the message shows both) or with another token (it shows nothing);
  // kInvalid for bad options.
  virtual Task<Result<NamespaceId>> Attach(NamespaceOptions options) = 0;

  // The longest restorable prefix. One index read per run. A hit refreshes recency and, by class,
  // expiry.
  virtual Task<Result<ChainHit>> Lookup(NamespaceId space, std::vector<BlockId> chain,
                                        LeaseOrder lease = {}) = 0;

  // Which blocks of the chain from `first` on are restorable, each for itself: independent keys (in
  // a namespace with run_blocks = 1), the last blocks of a window, prefixes with holes.
  virtual Task<Result<EachHit>> LookupEach(NamespaceId space, std::vector<BlockId> chain,
                                           uint32_t first = 0, LeaseOrder lease = {}) = 0;

  // Moves the deadlines of leases to `order.duration` from now, or as long as lookups here give one
  // at most. Each with its own result: kNotFound when it ended, or is another session's.
  virtual Task<std::vector<Status>> Renew(std::vector<LeaseId> leases, LeaseOrder order) = 0;
  // Ends leases early. Those that ended already are no fault.
  virtual Task<Status> Release(std::vector<LeaseId> leases, SessionId session = {}) = 0;

  // Reads blocks that are in the first `chain_blocks` of the chain, each with its own result.
  // `chain` as in Lookup; reads name blocks of it.
  virtual Task<std::vector<BlockReadResult>> Get(NamespaceId space, std::vector<BlockId> chain,
                                                 std::vector<BlockRead> reads,
                                                 Instant deadline) = 0;

  // Stores the blocks that are not there yet; the first writer of an id wins. Per-block status, in
  // order. Ok: visible to every later Lookup, and lost only beyond m faults. After a failure the
  // block may turn up or not, never with wrong bytes. kOverloaded: too much in flight. kNotFound:
  // the admission policy (admission.h) did not let it in, or what was to be kept just went: a miss.
  virtual Task<std::vector<Status>> Put(ChainPut put) = 0;

  // Refreshes blocks [first, end of chain) as a hit does, and raises their keep_until (0: leaves
  // it).
  // Per-block status, in order: kNotFound, kOverloaded (the quota does not allow the promise).
  virtual Task<std::vector<Status>> Touch(NamespaceId space, std::vector<BlockId> chain,
                                          uint32_t first, UnixMillis keep_until = {}) = 0;

  // Removes blocks' stripes wholly: other blocks put together with them go too (a cache may).
  // Leases and keep_until do not protect from it. kUnavailable: a target did not take part, and may
  // bring them back when it does again; call again then. So may a target that was out when the
  // store was opened.
  virtual Task<Status> Delete(NamespaceId space, std::vector<BlockId> chain, uint32_t first) = 0;
};

// Sessions, for who serves several clients: a dead client's leases end with its session.
class SessionHost {
 public:
  virtual ~SessionHost() = default;
  virtual SessionId OpenSession() = 0;
  virtual void EndSession(SessionId session) = 0;
};

}  // namespace cairn::kv
