// The bytes of a simulated device: the truth, the damage, and what a power cut would take back.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <unordered_map>

#include "kvstore/base/bytes.h"
#include "kvstore/base/random.h"

namespace cairn::sim {

inline constexpr uint64_t kSector = kv::kSectorSize;

// Sparse: a sector that was never written, or is all zero, costs (nearly) nothing.
class SimMedia {
 public:
  using Page = std::array<uint8_t, kSector>;
  // Shared, because the truth, the damage and the undo layers hold the same immutable page. Null is
  // a page of zeros.
  using PagePointer = std::shared_ptr<const Page>;

  // One sector of a write that landed where it should.
  void Store(uint64_t sector, PagePointer page);
  // One sector of a write that was acknowledged and never landed: the truth has it, readers do not.
  void Lose(uint64_t sector, PagePointer page);
  // What readers see in `sector` from now on, until it is written again. The truth stays.
  void Damage(uint64_t sector, PagePointer page);

  // What a reader sees, and what it would see without faults.
  PagePointer Visible(uint64_t sector) const;
  PagePointer Pristine(uint64_t sector) const;

  // A Sync takes a mark when it is called, and makes all before that mark durable when it is done.
  uint64_t MarkForSync();
  void MakeDurable(uint64_t mark);
  // A random subset of the sectors that are not yet durable falls back to an earlier state.
  void CutPower(kv::Random& random);
  // An empty device in the place of this one.
  void Wipe();

  uint64_t unsynced_sector_count() const;
  uint64_t page_count() const { return pristine_.size() + damage_.size(); }

 private:
  struct Before {
    PagePointer pristine;
    bool is_damaged = false;
    PagePointer damage;
  };
  struct Layer {  // What the sectors held before they were written since the previous mark.
    uint64_t mark = 0;
    std::map<uint64_t, Before> before;
  };

  void Remember(uint64_t sector);
  void SetPristine(uint64_t sector, PagePointer page);

  std::unordered_map<uint64_t, PagePointer> pristine_;  // Never iterated: its order is not fixed.
  std::map<uint64_t, PagePointer> damage_;
  std::deque<Layer> layers_{Layer{}};  // Oldest first; writes go to the last.
};

// Null when `bytes` (one sector) is all zero.
SimMedia::PagePointer MakePage(const uint8_t* bytes);

}  // namespace cairn::sim
