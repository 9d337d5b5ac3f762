// Memory that RDMA devices may read and write: for one call, or for as long as its owner keeps it.
//
// A registration goes with the pages that were there when it was made. Memory that was freed and
// mapped anew would be read and written where it no longer is; so only regions, whose owners say
// when they end, stay registered. All else is registered for one call, or copied if it is small.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "kvstore/base/bytes.h"
#include "kvstore/base/result.h"
#include "kvstore/rdma/rdma_options.h"

namespace cairn::kv {

// Memory of the host that stays where it is, or memory of an accelerator.
struct RdmaRegion {
  MutableByteSpan memory;
  // Of an accelerator: its dma-buf and where in it the memory begins, or -1.
  int dmabuf_fd = -1;
  uint64_t dmabuf_offset = 0;
  // Of an accelerator: how bytes get there and back where no device can reach it directly (by
  // dma-buf, or by a peer-memory module); they go through pinned memory of the host then.
  std::function<void(void* to, const void* from, size_t size)> copy = {};
};

// The regions of a process. Loop thread only.
class RdmaRegions {
 public:
  // kInvalid when it overlaps another one.
  Status Add(RdmaRegion region);
  // `memory` must be a region that no call uses. Devices forget it.
  void Remove(MutableByteSpan memory);

  struct Known {
    uint64_t id = 0;  // Never used again.
    RdmaRegion region;
  };
  // The region that `memory` lies in, whole, or nothing.
  const Known* Find(ByteSpan memory) const;
  void OnRemove(std::function<void(uint64_t id)> call) { on_remove_.push_back(std::move(call)); }

 private:
  std::map<const uint8_t*, Known> by_end_;
  std::vector<std::function<void(uint64_t)>> on_remove_;
  uint64_t next_id_ = 1;
};

// What a device will do with memory.
enum class RdmaUse : uint8_t {
  kTake,    // We have the device take it from there.
  kFill,    // We have the device put it there.
  kExpose,  // The peer reads it.
  kLand,    // The peer writes it.
};

class RdmaMemory;

// Memory in a device's reach, until this goes.
class HeldMemory {
 public:
  HeldMemory() = default;
  HeldMemory(HeldMemory&& other) noexcept { Swap(other); }
  HeldMemory& operator=(HeldMemory&& other) noexcept {
    Swap(other);
    return *this;
  }
  ~HeldMemory();

  uint64_t address() const { return address_; }
  uint32_t local_key() const { return local_key_; }
  uint32_t remote_key() const { return remote_key_; }
  // After a fill or a landing: the first `size` bytes are where they belong.
  void Deliver(size_t size);

 private:
  friend class RdmaMemory;
  void Swap(HeldMemory& other);
  void Name(const ibv_mr& registration, uint64_t address);

  RdmaMemory* owner_ = nullptr;
  uint64_t address_ = 0;
  uint32_t local_key_ = 0;
  uint32_t remote_key_ = 0;
  // How it is held: at most one of a registration of its own, a region's, a slot of the arena.
  ibv_mr* own_ = nullptr;
  uint64_t region_ = 0;
  uint32_t slot_ = UINT32_MAX;
  // Of a copy: where it belongs, and the pinned memory where it is (a slot, or `bounce_`).
  uint8_t* target_ = nullptr;
  Bytes bounce_;
  std::function<void(void*, const void*, size_t)> copy_;
};

// Of one device. Loop thread only.
class RdmaMemory {
 public:
  // All must outlive it; `domain` is the device's.
  RdmaMemory(ibv_pd& domain, RdmaRegions& regions, const RdmaNetworkOptions& options,
             RdmaNetworkStats& stats);
  ~RdmaMemory();
  RdmaMemory(const RdmaMemory&) = delete;
  RdmaMemory& operator=(const RdmaMemory&) = delete;

  // `memory` must stay until the result is gone. kOverloaded: the system lets no more be pinned.
  Result<HeldMemory> Hold(ByteSpan memory, RdmaUse use);

  // What this device can do about accelerators' memory.
  bool takes_dmabuf() const { return takes_dmabuf_; }
  bool takes_peer_memory() const { return takes_peer_memory_; }
  size_t holds() const { return holds_; }

 private:
  friend class HeldMemory;
  struct Cached {
    ibv_mr* registration = nullptr;
    uint64_t bytes = 0;
    uint32_t uses = 0;
    uint64_t used_at = 0;
  };

  bool HoldRegion(const RdmaRegions::Known& known, ByteSpan memory, HeldMemory& held);
  bool HoldSlot(ByteSpan memory, RdmaUse use, HeldMemory& held);
  Status HoldOwn(ByteSpan memory, RdmaUse use, HeldMemory& held);
  Status HoldBounce(const RdmaRegion& region, ByteSpan memory, RdmaUse use, HeldMemory& held);
  ibv_mr* Register(void* memory, size_t size, int access);
  ibv_mr* RegisterRegion(const RdmaRegion& region);
  // Makes room for `bytes` by forgetting regions that nothing uses. False: there is not enough.
  bool MakeRoom(uint64_t bytes);
  void Forget(uint64_t region);
  void Release(HeldMemory& held);

  ibv_pd& domain_;
  RdmaRegions& regions_;
  const RdmaNetworkOptions& options_;
  RdmaNetworkStats& stats_;
  const bool takes_dmabuf_;
  const bool takes_peer_memory_;
  Bytes arena_;
  ibv_mr* arena_registration_ = nullptr;  // None when it could not be pinned.
  std::vector<uint32_t> free_slots_;
  std::map<uint64_t, Cached> cached_;
  uint64_t cached_bytes_ = 0;
  uint64_t clock_ = 0;
  size_t holds_ = 0;
};

}  // namespace cairn::kv
