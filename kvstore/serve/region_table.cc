// Every number that a client sends is checked against what it registered.
#include "kvstore/serve/region_table.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

namespace cairn::kv {

Region::Region(std::unique_ptr<SharedMemory> memory, ServerStats& stats, PayloadMemory* network)
    : memory_(std::move(memory)), known_(network, memory_->span()), stats_(stats) {
  ++stats_.regions;
  stats_.region_bytes += span().size();
}

Region::~Region() {
  --stats_.regions;
  stats_.region_bytes -= span().size();
}

Status RegionTable::Register(const wire::RegisterRequest& request, int descriptor) {
  if (descriptor < 0) return {Code::kInvalid, "no descriptor came with the registration"};
  Status refused;
  if (regions_.contains(request.region)) {
    refused = Status(Code::kConflict, "a region of this number is registered already");
  } else if (regions_.size() >= limits_.regions_max) {
    refused = Status(Code::kOverloaded, "too many regions: see regions_max");
  } else if (request.size > limits_.bytes_max - std::min(limits_.bytes_max, bytes_)) {
    refused = Status(Code::kOverloaded, "too much memory registered: see region_bytes_max");
  }
  if (!refused.ok()) {
    close(descriptor);
    return refused;
  }
  KV_ASSIGN_OR_RETURN(auto memory, SharedMemory::Adopt(descriptor, request.size));
  bytes_ += request.size;
  regions_.emplace(request.region, std::make_shared<Region>(std::move(memory), stats_, network_));
  return Status();
}

Status RegionTable::Unregister(uint32_t region) {
  const auto found = regions_.find(region);
  if (found == regions_.end()) return {Code::kNotFound, "no region of this number is registered"};
  bytes_ -= found->second->span().size();
  regions_.erase(found);
  return Status();
}

void RegionTable::Clear() {
  regions_.clear();
  bytes_ = 0;
}

Result<std::vector<MutableByteSpan>> RegionTable::Resolve(
    const std::vector<wire::Segment>& segments, Pins& pins) const {
  std::vector<MutableByteSpan> spans;
  for (const wire::Segment& segment : segments) {
    const auto found = regions_.find(segment.region);
    if (found == regions_.end()) {
      return Status(Code::kInvalid, std::string("region ")
                                        .append(std::to_string(segment.region))
                                        .append(" is not registered"));
    }
    const MutableByteSpan memory = found->second->span();
    if (segment.offset > memory.size() || segment.size > memory.size() - segment.offset) {
      return Status(Code::kInvalid, std::string("a segment reaches beyond region ")
                                        .append(std::to_string(segment.region)));
    }
    if (std::find(pins.begin(), pins.end(), found->second) == pins.end()) {
      pins.push_back(found->second);
    }
    const MutableByteSpan part = memory.subspan(segment.offset, segment.size);
    if (!spans.empty() && spans.back().data() + spans.back().size() == part.data()) {
      spans.back() = {spans.back().data(), spans.back().size() + part.size()};
    } else {
      spans.push_back(part);
    }
  }
  return spans;
}

}  // namespace cairn::kv
