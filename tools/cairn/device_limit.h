// What the device under a store can do by itself: the yardstick of `cairn bench`.
#pragma once

#include <cstdint>
#include <string>

#include "kvstore/base/result.h"

namespace cairn::tools {

struct DeviceLimit {
  double write_bytes_per_second = 0;
  double read_bytes_per_second = 0;
};

struct DeviceProbe {
  std::string folder;  // On the device; a file is made there and removed again.
  uint64_t bytes = 0;  // In whole units.
  uint64_t unit = 0;   // Of one operation; a multiple of the sector size.
  uint32_t depth = 8;  // Operations in flight.
};

// Direct writes one after another, then direct reads at random, `depth` in flight. kInvalid,
// kNoSpace: the file cannot be made; the message says why.
kv::Result<DeviceLimit> MeasureDevice(const DeviceProbe& probe);

}  // namespace cairn::tools
