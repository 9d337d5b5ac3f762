// The memory that this client shares with its server, and how requests name parts of it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "kvstore/os/shared_memory.h"
#include "kvstore/wire/messages.h"

namespace cairn::kv {

// Loop thread only.
class ClientRegions {
 public:
  struct Region {
    uint32_t number = 0;
    std::unique_ptr<SharedMemory> memory;
    uint64_t registered_size = 0;  // Of its file, with the server of the current session.
  };

  Result<Region*> Add(uint64_t size);
  // Null when no region is exactly this.
  Region* Find(MutableByteSpan memory);
  void Remove(uint32_t number) { regions_.erase(number); }
  std::vector<Region*> all();
  void ForgetRegistrations();

  // How a request names these bytes; nothing when some of them are not in a registered region.
  template <typename Span>
  std::optional<std::vector<wire::Segment>> SegmentsOf(const std::vector<Span>& parts) const {
    std::vector<wire::Segment> segments;
    for (const ByteSpan part : parts) {
      if (!Append(part, segments)) return std::nullopt;
    }
    return segments;
  }
  // Late writes of a server to these bytes, of registered regions, do not arrive from now on.
  // Whole sectors.
  void Revoke(MutableByteSpan part);

 private:
  const Region* Holding(ByteSpan part) const;
  bool Append(ByteSpan part, std::vector<wire::Segment>& segments) const;

  uint32_t next_ = 1;
  std::map<uint32_t, Region> regions_;
};

}  // namespace cairn::kv
