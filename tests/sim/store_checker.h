// What a store must answer: every acknowledged block that is neither expired, deleted, evicted nor
// lost in a power cut, exact; anything else exact or not at all; nothing expired or deleted.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "kvstore/client/block_store.h"

namespace cairn::sim {

// A block of one of the simulation's namespaces; the same id in two of them is two blocks.
struct BlockKey {
  uint32_t space = 0;
  kv::BlockId id;
  auto operator<=>(const BlockKey&) const = default;
};

// The record of what was done, kept beside the store. Every operation tells when it begins and when
// it ends; what overlaps is judged by what any order allows.
class StoreChecker {
 public:
  // Unix milliseconds, and an order of events within them.
  struct Moment {
    int64_t unix = 0;
    uint64_t order = 0;
  };
  // A lookup, get or removal on its way.
  struct Access {
    Moment began;
    std::vector<BlockKey> keys;
    std::vector<bool> absent;  // Of each key: surely not there when it began.
    std::vector<bool> owed;    // Of each key: owed when it began.
    std::vector<bool> held;    // Of each key: leased or kept when it began.
  };
  // What is older was written by the node's checkpoints, with slack.
  static constexpr int64_t kCheckpointMillis = 7'000;

  // Before any use of the block. The bytes are a function of the key, so a mix-up shows.
  void Declare(BlockKey key, uint32_t size, kv::RunId run, const kv::NamespaceOptions& space);
  kv::ByteSpan BytesOf(BlockKey key) const { return blocks_.at(key).bytes.span(); }
  // The same for a block of the first namespace that need not be declared.
  static kv::Bytes BytesOf(kv::BlockId id, uint32_t size);

  Moment Now(int64_t unix) { return {unix, ++order_}; }

  void BeginPut(BlockKey key, Moment now, int64_t ttl_millis);
  void EndPut(BlockKey key, const kv::Status& outcome, bool durable, Moment began, Moment now,
              int64_t ttl_millis);
  // A lookup or get: what it finds may move the expiry of these blocks' stripes.
  Access BeginLook(std::vector<BlockKey> keys, Moment now);
  void EndLook(const Access& access, Moment now);
  void Hit(BlockKey key, Moment began);
  // Found with a lease: not evicted before `until`, by Unix milliseconds.
  void Leased(BlockKey key, int64_t until);
  // Somebody asks to keep it until then, by Unix milliseconds; it may last so long from now on.
  void BeginKeep(BlockKey key, int64_t until);
  // The promise that was asked for when it `began` is given.
  void Kept(BlockKey key, int64_t until, Moment began, Moment now);
  // All that were declared in the namespace.
  std::vector<BlockKey> KeysOf(uint32_t space) const;
  // Stripes go wholly: what was put together with these blocks is no longer owed.
  Access BeginDelete(std::vector<BlockKey> keys, Moment now);
  void EndDelete(const Access& access, bool done, Moment now);
  // The keys are all of a namespace, which was deleted: also what is on its way there is gone, and
  // no power cut brings anything back.
  void EndDrop(const Access& access, bool done, Moment now);

  // What lies in the runs of these blocks: a delete of them may take it.
  std::vector<BlockKey> RunMatesOf(const std::vector<BlockKey>& keys);

  // Whether the block is owed at this time, evictions aside.
  bool Owed(BlockKey key, int64_t at) const;
  // The access ends now, and its i-th block was owed all the time.
  bool OwedSince(const Access& access, size_t i, int64_t now) const;
  // The same, and it was leased or kept: then evictions are no excuse.
  bool HeldSince(const Access& access, size_t i, int64_t now) const;
  // The block is owed, and all its shards were written and made to last: no read of it may be
  // degraded while nothing is broken.
  bool OwedWhole(BlockKey key, int64_t at) const;
  // An owed block is not there, which is allowed to those that were evicted.
  void Missed(BlockKey key);
  uint64_t missed() const { return missed_; }

  // Empty when the access may find its i-th block, or what is wrong with that.
  std::string JudgeFound(const Access& access, size_t i, uint32_t size) const;
  // The same for a block that was read.
  std::string JudgeBytes(const Access& access, size_t i, uint32_t size, kv::ByteSpan bytes) const;

  // The process dies: hits of the last seconds may be forgotten, puts on their way may be there in
  // part. After a power cut nothing that only memory knew is owed.
  void Crashed(int64_t now, bool power_cut);
  // Leases end with the process, and so does what is in memory only.
  void Stopped(int64_t now);
  // Somebody has set the calendar by so many milliseconds; before it was `before`. What had expired
  // by then is owed no more, and what the step may have made of accesses on their way is not
  // judged.
  void Stepped(int64_t by, int64_t before);
  // Some block may have lost shards although no target is at fault.
  bool tainted() const { return tainted_; }

 private:
  struct Block {
    kv::Bytes bytes;
    kv::RunId run;
    bool refreshed = false;
    bool in_memory = false;
    bool acknowledged = false;
    bool durable = false;
    bool tainted = false;
    bool fresh = false;  // Nothing of it can be there but by puts that are not over, or declined.
    int64_t acknowledged_at = 0;
    int64_t born = 0;         // The earliest put began that may have stored what is there. 0: none.
    int64_t ttl_min = 0;      // Of the puts since.
    int64_t ttl_max = 0;
    int64_t expires_max = 0;  // By these puts alone.
    bool half_gone = false;  // Perhaps: it was on its way out when power was cut.
    int64_t leased_until = 0;
    int64_t kept_until = 0;  // By a promise that was given, at kept_at.
    int64_t kept_at = 0;
    int64_t kept_max = 0;    // By any that was asked for.
    uint32_t puts_in_flight = 0;
    uint64_t put_order = 0;     // When a put last began or ended.
    uint64_t began_order = 0;   // When one last began.
    uint64_t delete_order = 0;  // When a delete last began or ended that may have removed it.
    int64_t deleted_at = 0;     // Not 0: surely gone since, and not put again.
    bool dropped = false;       // Then: with its namespace.
    std::deque<int64_t> hits;   // When the latest began, oldest first.
  };
  struct Run {
    std::set<BlockKey> blocks;
    uint32_t looks_in_flight = 0;
    uint32_t deletes_in_flight = 0;
    int64_t looked_at = 0;  // When the last one ended.
    int64_t deleted_at = 0;
  };

  Run& RunOf(BlockKey key) { return runs_.at({key.space, blocks_.at(key).run}); }
  std::set<Run*> RunsOf(const std::vector<BlockKey>& keys);
  bool IsGone(BlockKey key, int64_t now) const;
  void DisownRuns(const std::vector<BlockKey>& keys, uint64_t order);
  bool IsHeld(const Block& block, int64_t now) const {
    return now < std::max(block.leased_until, block.kept_until);
  }
  void Taint(Block& block);

  std::map<BlockKey, Block> blocks_;
  std::map<std::pair<uint32_t, kv::RunId>, Run> runs_;
  uint64_t order_ = 0;
  uint64_t missed_ = 0;
  bool tainted_ = false;
  int64_t latest_ = 0;          // By the calendar, before it was set back. 0: it never was.
  uint64_t stepped_order_ = 0;  // When it was set last.
};

}  // namespace cairn::sim
