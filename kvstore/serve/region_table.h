// The memory that one client shares with the server, and what its requests name of it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "kvstore/io/payload_memory.h"
#include "kvstore/os/shared_memory.h"
#include "kvstore/serve/server.h"
#include "kvstore/wire/messages.h"

namespace cairn::kv {

// Mapped until nobody holds it: the table, and every request that reads or writes it.
class Region {
 public:
  // `network` as of BufferPool.
  Region(std::unique_ptr<SharedMemory> memory, ServerStats& stats, PayloadMemory* network);
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  MutableByteSpan span() const { return memory_->span(); }

 private:
  std::unique_ptr<SharedMemory> memory_;
  KnownMemory known_;
  ServerStats& stats_;  // Counts regions as long as they are mapped.
};

struct RegionLimits {
  uint32_t regions_max = 0;
  uint64_t bytes_max = 0;
};

// Loop thread only. `stats` and `network` must outlive it and every region.
class RegionTable {
 public:
  RegionTable(RegionLimits limits, ServerStats& stats, PayloadMemory* network)
      : limits_(limits), stats_(stats), network_(network) {}

  // Takes the descriptor over. kOverloaded: beyond the limits. kConflict: the number is in use.
  // kInvalid: no descriptor, or not memory that is safe to share.
  Status Register(const wire::RegisterRequest& request, int descriptor);
  // kNotFound when there is none.
  Status Unregister(uint32_t region);
  void Clear();

  // What the segments name, neighbours joined; `pins` then holds their regions. kInvalid when one
  // is not registered or reaches beyond its end.
  using Pins = std::vector<std::shared_ptr<Region>>;
  Result<std::vector<MutableByteSpan>> Resolve(const std::vector<wire::Segment>& segments,
                                               Pins& pins) const;

 private:
  const RegionLimits limits_;
  ServerStats& stats_;
  PayloadMemory* const network_;
  std::map<uint32_t, std::shared_ptr<Region>> regions_;
  uint64_t bytes_ = 0;
};

}  // namespace cairn::kv
