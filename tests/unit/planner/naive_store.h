// The store's policy as its rules say it, evictions included: slow, and easy to believe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "kvstore/base/random.h"
#include "kvstore/client/target_choice.h"
#include "tests/unit/planner/naive_caches.h"
#include "tools/cachesim/store_policy.h"

namespace cairn::tools {

// What StorePolicy must equal. What is missing of a run is written as stripes, which live and die
// as one. Records have no headers here. Only the choice of targets is the store's own code.
class NaiveStore {
 public:
  explicit NaiveStore(const StorePolicyOptions& options);

  void Add(const NaiveRequest& request, size_t retention);
  const StorePolicyCounts& counts() const { return counts_; }
  uint64_t used_bytes() const;

 private:
  struct Stripe {
    std::vector<uint64_t> blocks;
    std::map<size_t, size_t> segment_on;  // By target.
    uint64_t bytes = 0;                   // Of the record on each target.
    int64_t expires_ms = 0;
    int64_t used_second = 0;
    size_t position = 0;
    size_t retention = 0;
    bool hit = false;
  };
  struct Segment {
    enum class State { kFree, kOpen, kSealed } state = State::kFree;
    std::vector<uint64_t> stripes = {};  // In the order of their records, whatever became of them.
    uint64_t used = 0;
    uint64_t taken = 0;  // Segments' worth of space.
  };
  enum class Purpose { kPut, kMove };
  struct Target {
    std::vector<Segment> segments;
    std::map<std::pair<Purpose, size_t>, size_t> open;  // By purpose and retention.
  };
  // A sealed segment as a reclaim finds it; its stripes are those that are still there.
  struct Sealed {
    size_t segment = 0;
    uint64_t used = 0;
    std::vector<uint64_t> stripes;
  };

  std::optional<uint64_t> HolderOf(uint64_t block) const;
  bool IsExpired(const Stripe& stripe) const { return now_ms_ >= stripe.expires_ms; }
  bool IsLive(uint64_t id) const { return id != writing_ && !IsExpired(stripes_.at(id)); }
  void Write(std::vector<uint64_t> blocks, size_t position, size_t retention);
  std::vector<kv::TargetId> Choose(size_t shards);
  uint64_t FreeOf(const Target& target) const;
  // The segment; none where there is no room.
  std::optional<size_t> Append(Target& target, uint64_t id, Purpose purpose);
  void MakeRoom();

  // --- What to free, and what to keep of it. ---
  std::vector<Sealed> SealedOf(size_t target) const;
  // By the segments of all that is sealed: first those that hold nothing live.
  std::vector<Sealed> Victims(const std::vector<Sealed>& all, uint64_t wanted);
  void FindCutoff(const std::vector<Sealed>& all);
  // Larger is colder: sixteenths of a second, then the position.
  std::pair<uint64_t, size_t> ColdnessOf(const Stripe& stripe) const;
  bool IsHot(uint64_t id) const;
  uint64_t HotBytes(const Sealed& sealed) const;
  void NoteFreed(const Sealed& sealed, size_t sealed_count);
  // What was moved, in bytes.
  uint64_t Free(size_t target, const Sealed& sealed, uint64_t budget);

  const StorePolicyOptions options_;
  std::map<uint64_t, Stripe> stripes_;  // By a number of their own; those that are alive.
  uint64_t next_id_ = 1;
  uint64_t writing_ = 0;
  std::vector<Target> targets_;
  int64_t now_ms_ = 0;
  kv::TargetChooser chooser_;
  kv::Random random_{1};
  StorePolicyCounts counts_;

  double hot_share_ = 0.8;
  double unused_aging_ = 1;
  std::optional<std::pair<uint64_t, size_t>> cutoff_;
  uint64_t freed_since_cutoff_ = 0;
  uint64_t cutoff_lasts_ = 0;
};

}  // namespace cairn::tools
