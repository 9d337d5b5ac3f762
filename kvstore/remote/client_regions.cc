// Addresses of this process become offsets in a descriptor that the server has, too.
#include "kvstore/remote/client_regions.h"

#include <algorithm>
#include <utility>

#include "kvstore/base/check.h"

namespace cairn::kv {

Result<ClientRegions::Region*> ClientRegions::Add(uint64_t size) {
  KV_ASSIGN_OR_RETURN(auto memory, SharedMemory::Create(size));
  const uint32_t number = next_++;
  Region& region = regions_[number];
  region.number = number;
  region.memory = std::move(memory);
  return &region;
}

ClientRegions::Region* ClientRegions::Find(MutableByteSpan memory) {
  for (auto& [number, region] : regions_) {
    const MutableByteSpan span = region.memory->span();
    if (span.data() == memory.data() && span.size() == memory.size()) return &region;
  }
  return nullptr;
}

std::vector<ClientRegions::Region*> ClientRegions::all() {
  std::vector<Region*> all;
  for (auto& [number, region] : regions_) all.push_back(&region);
  return all;
}

void ClientRegions::ForgetRegistrations() {
  for (auto& [number, region] : regions_) region.registered_size = 0;
}

const ClientRegions::Region* ClientRegions::Holding(ByteSpan part) const {
  for (const auto& [number, region] : regions_) {
    const MutableByteSpan span = region.memory->span();
    const uint8_t* end = span.data() + span.size();
    if (part.data() >= span.data() && part.data() <= end &&
        part.size() <= static_cast<size_t>(end - part.data())) {
      return &region;
    }
  }
  return nullptr;
}

bool ClientRegions::Append(ByteSpan part, std::vector<wire::Segment>& segments) const {
  if (part.empty()) return true;
  const Region* region = Holding(part);
  if (region == nullptr || part.size() > kBlockSizeMax) return false;
  for (const SharedMemory::Extent& extent : region->memory->ExtentsOf(part)) {
    if (extent.file_offset + extent.size > region->registered_size) return false;
    segments.push_back({.region = region->number,
                        .offset = extent.file_offset,
                        .size = static_cast<uint32_t>(extent.size)});
  }
  return true;
}

void ClientRegions::Revoke(MutableByteSpan part) {
  const Region* region = Holding(part);
  KV_CHECK(region != nullptr);
  // Without memory for it the old would have to stay, and be written to by surprise.
  KV_CHECK(region->memory->Replace(part).ok());
}

}  // namespace cairn::kv
