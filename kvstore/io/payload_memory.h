// The seam to a network's devices: memory that payloads often lie in is made known to them once,
// instead of for each call.
#pragma once

#include <utility>

#include "kvstore/base/bytes.h"

namespace cairn::kv {

// Loop thread only.
class PayloadMemory {
 public:
  virtual ~PayloadMemory() = default;

  // `memory` stays where it is until Remove. May refuse: its payloads travel all the same.
  virtual bool Add(MutableByteSpan memory) = 0;
  // `memory` was added, and no call uses it.
  virtual void Remove(MutableByteSpan memory) = 0;
};

// Memory is known to a network for as long as this lives.
class KnownMemory {
 public:
  KnownMemory() = default;
  // `network` must outlive it; null: there is no network that wants to know.
  KnownMemory(PayloadMemory* network, MutableByteSpan memory)
      : network_(network != nullptr && network->Add(memory) ? network : nullptr),
        memory_(memory) {}
  KnownMemory(KnownMemory&& other) noexcept
      : network_(std::exchange(other.network_, nullptr)), memory_(other.memory_) {}
  KnownMemory& operator=(KnownMemory&& other) noexcept {
    std::swap(network_, other.network_);
    std::swap(memory_, other.memory_);
    return *this;
  }
  ~KnownMemory() {
    if (network_ != nullptr) network_->Remove(memory_);
  }

 private:
  PayloadMemory* network_ = nullptr;
  MutableByteSpan memory_;
};

}  // namespace cairn::kv
