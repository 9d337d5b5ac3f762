// Regions first, then slots for what is small, then a registration for this one use.
#include "kvstore/rdma/rdma_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace cairn::kv {
namespace {

// Copying so much costs less than pinning and unpinning it.
constexpr size_t kSlotSize = 64 * kKiB;

int AccessFor(RdmaUse use) {
  switch (use) {
    case RdmaUse::kTake: return 0;
    case RdmaUse::kFill: return IBV_ACCESS_LOCAL_WRITE;
    case RdmaUse::kExpose: return IBV_ACCESS_REMOTE_READ;
    case RdmaUse::kLand: return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  }
  return 0;
}

constexpr int kEveryAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

bool Reads(RdmaUse use) { return use == RdmaUse::kTake || use == RdmaUse::kExpose; }

// A kernel and driver that know dma-bufs complain of the descriptor, others of the call.
bool KnowsDmabuf(ibv_pd& domain) {
  ibv_mr* const registration =
      ibv_reg_dmabuf_mr(&domain, 0, kSectorSize, 0, -1, IBV_ACCESS_LOCAL_WRITE);
  if (registration == nullptr) return errno == EBADF;
  ibv_dereg_mr(registration);
  return true;
}

bool KnowsPeerMemory() {
  return access("/sys/module/nvidia_peermem", F_OK) == 0 ||
         access("/sys/module/nv_peer_mem", F_OK) == 0;
}

}  // namespace

// --- Regions ------------------------------------------------------------------------------------

Status RdmaRegions::Add(RdmaRegion region) {
  const uint8_t* const begin = region.memory.data();
  const uint8_t* const end = begin + region.memory.size();
  const auto next = by_end_.upper_bound(begin);
  if (region.memory.empty() || (next != by_end_.end() && next->second.region.memory.data() < end)) {
    return {Code::kInvalid, "a region must have memory that is not in another one"};
  }
  by_end_[end] = Known{.id = next_id_++, .region = std::move(region)};
  return {};
}

void RdmaRegions::Remove(MutableByteSpan memory) {
  const auto found = by_end_.find(memory.data() + memory.size());
  KV_CHECK(found != by_end_.end() && found->second.region.memory.data() == memory.data());
  for (const auto& call : on_remove_) call(found->second.id);
  by_end_.erase(found);
}

const RdmaRegions::Known* RdmaRegions::Find(ByteSpan memory) const {
  const auto found = by_end_.lower_bound(memory.data() + memory.size());
  if (found == by_end_.end() || found->second.region.memory.data() > memory.data()) return nullptr;
  return &found->second;
}

// --- What is held -------------------------------------------------------------------------------

HeldMemory::~HeldMemory() {
  if (owner_ != nullptr) owner_->Release(*this);
}

void HeldMemory::Swap(HeldMemory& other) {
  std::swap(owner_, other.owner_);
  std::swap(address_, other.address_);
  std::swap(local_key_, other.local_key_);
  std::swap(remote_key_, other.remote_key_);
  std::swap(own_, other.own_);
  std::swap(region_, other.region_);
  std::swap(slot_, other.slot_);
  std::swap(target_, other.target_);
  std::swap(bounce_, other.bounce_);
  std::swap(copy_, other.copy_);
}

void HeldMemory::Name(const ibv_mr& registration, uint64_t address) {
  address_ = address;
  local_key_ = registration.lkey;
  remote_key_ = registration.rkey;
}

void HeldMemory::Deliver(size_t size) {
  if (target_ == nullptr || size == 0) return;
  const void* const from = reinterpret_cast<const void*>(address_);
  if (copy_) {
    copy_(target_, from, size);
  } else {
    std::memcpy(target_, from, size);
  }
  owner_->stats_.bytes_copied += size;
}

// --- Memory of a device -------------------------------------------------------------------------

RdmaMemory::RdmaMemory(ibv_pd& domain, RdmaRegions& regions, const RdmaNetworkOptions& options,
                       RdmaNetworkStats& stats)
    : domain_(domain), regions_(regions), options_(options), stats_(stats),
      takes_dmabuf_(KnowsDmabuf(domain)), takes_peer_memory_(KnowsPeerMemory()),
      arena_(options.bounce_bytes / kSlotSize * kSlotSize) {
  regions_.OnRemove([this](uint64_t id) { Forget(id); });
  if (arena_.empty()) return;
  arena_registration_ = Register(arena_.data(), arena_.size(), kEveryAccess);
  if (arena_registration_ == nullptr) return;
  for (size_t slot = 0; slot < arena_.size() / kSlotSize; ++slot) {
    free_slots_.push_back(static_cast<uint32_t>(slot));
  }
}

RdmaMemory::~RdmaMemory() {
  KV_CHECK(holds_ == 0);
  for (auto& [id, cached] : cached_) KV_CHECK(ibv_dereg_mr(cached.registration) == 0);
  stats_.cached_bytes -= cached_bytes_;
  if (arena_registration_ != nullptr) KV_CHECK(ibv_dereg_mr(arena_registration_) == 0);
}

Result<HeldMemory> RdmaMemory::Hold(ByteSpan memory, RdmaUse use) {
  HeldMemory held;
  if (memory.empty()) return held;
  const RdmaRegions::Known* const known = regions_.Find(memory);
  const bool of_host = known == nullptr || known->region.copy == nullptr;
  if (known != nullptr && HoldRegion(*known, memory, held)) {
  } else if (!of_host) {
    KV_RETURN_IF_ERROR(HoldBounce(known->region, memory, use, held));
  } else if (!HoldSlot(memory, use, held)) {
    KV_RETURN_IF_ERROR(HoldOwn(memory, use, held));
  }
  held.owner_ = this;
  ++holds_;
  return held;
}

bool RdmaMemory::HoldRegion(const RdmaRegions::Known& known, ByteSpan memory, HeldMemory& held) {
  auto found = cached_.find(known.id);
  if (found == cached_.end()) {
    const uint64_t bytes = known.region.memory.size();
    if (!MakeRoom(bytes)) return false;
    ibv_mr* const registration = RegisterRegion(known.region);
    if (registration == nullptr) return false;
    found = cached_.emplace(known.id, Cached{.registration = registration, .bytes = bytes}).first;
    cached_bytes_ += bytes;
    stats_.cached_bytes += bytes;
  }
  Cached& cached = found->second;
  ++cached.uses;
  cached.used_at = ++clock_;
  held.region_ = known.id;
  // A dma-buf's addresses count from where the registration begins.
  const auto offset = static_cast<uint64_t>(memory.data() - known.region.memory.data());
  held.Name(*cached.registration, reinterpret_cast<uint64_t>(known.region.memory.data()) + offset);
  return true;
}

bool RdmaMemory::HoldSlot(ByteSpan memory, RdmaUse use, HeldMemory& held) {
  if (memory.size() > kSlotSize || free_slots_.empty()) return false;
  held.slot_ = free_slots_.back();
  free_slots_.pop_back();
  uint8_t* const slot = arena_.data() + held.slot_ * kSlotSize;
  held.Name(*arena_registration_, reinterpret_cast<uint64_t>(slot));
  if (Reads(use)) {
    std::memcpy(slot, memory.data(), memory.size());
    stats_.bytes_copied += memory.size();
  } else {
    held.target_ = const_cast<uint8_t*>(memory.data());
  }
  return true;
}

Status RdmaMemory::HoldOwn(ByteSpan memory, RdmaUse use, HeldMemory& held) {
  auto* const begin = const_cast<uint8_t*>(memory.data());
  held.own_ = Register(begin, memory.size(), AccessFor(use));
  if (held.own_ == nullptr) {
    return {Code::kOverloaded, std::string("memory cannot be registered for RDMA (see ulimit -l, "
                                           "LimitMEMLOCK): ") +
                                   std::strerror(errno)};
  }
  held.Name(*held.own_, reinterpret_cast<uint64_t>(begin));
  return {};
}

Status RdmaMemory::HoldBounce(const RdmaRegion& region, ByteSpan memory, RdmaUse use,
                              HeldMemory& held) {
  Bytes bounce(memory.size());
  if (Reads(use)) {
    region.copy(bounce.data(), memory.data(), memory.size());
    stats_.bytes_copied += memory.size();
  }
  KV_RETURN_IF_ERROR(HoldOwn(bounce.span(), use, held));
  held.bounce_ = std::move(bounce);
  held.copy_ = region.copy;
  if (!Reads(use)) held.target_ = const_cast<uint8_t*>(memory.data());
  return {};
}

ibv_mr* RdmaMemory::Register(void* memory, size_t size, int access) {
  ++stats_.registrations;
  return ibv_reg_mr(&domain_, memory, size, access);
}

ibv_mr* RdmaMemory::RegisterRegion(const RdmaRegion& region) {
  const MutableByteSpan memory = region.memory;
  if (region.dmabuf_fd >= 0 && takes_dmabuf_) {
    ++stats_.registrations;
    return ibv_reg_dmabuf_mr(&domain_, region.dmabuf_offset, memory.size(),
                             reinterpret_cast<uint64_t>(memory.data()), region.dmabuf_fd,
                             kEveryAccess);
  }
  const bool of_host = region.copy == nullptr;
  if (!of_host && !takes_peer_memory_) return nullptr;
  return Register(memory.data(), memory.size(), kEveryAccess);
}

bool RdmaMemory::MakeRoom(uint64_t bytes) {
  uint64_t in_use = 0;
  for (const auto& [id, cached] : cached_) in_use += cached.uses > 0 ? cached.bytes : 0;
  if (in_use + bytes > options_.cached_bytes_max) return false;  // Whatever is forgotten.
  while (cached_bytes_ + bytes > options_.cached_bytes_max) {
    uint64_t oldest = 0;
    for (const auto& [id, cached] : cached_) {
      if (cached.uses > 0) continue;
      if (oldest == 0 || cached.used_at < cached_.at(oldest).used_at) oldest = id;
    }
    Forget(oldest);
  }
  return true;
}

void RdmaMemory::Forget(uint64_t region) {
  const auto found = cached_.find(region);
  if (found == cached_.end()) return;
  KV_CHECK(found->second.uses == 0);
  KV_CHECK(ibv_dereg_mr(found->second.registration) == 0);
  cached_bytes_ -= found->second.bytes;
  stats_.cached_bytes -= found->second.bytes;
  cached_.erase(found);
}

void RdmaMemory::Release(HeldMemory& held) {
  --holds_;
  if (held.own_ != nullptr) KV_CHECK(ibv_dereg_mr(held.own_) == 0);
  if (held.region_ != 0) --cached_.at(held.region_).uses;
  if (held.slot_ != UINT32_MAX) free_slots_.push_back(held.slot_);
}

}  // namespace cairn::kv
