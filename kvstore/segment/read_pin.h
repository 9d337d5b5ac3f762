// Keeps a segment from being freed while it is read.
#pragma once

#include "kvstore/segment/disk_segment_log.h"

namespace cairn::kv {

// The segment must outlive it, which Free sees to.
class DiskSegmentLog::ReadPin {
 public:
  explicit ReadPin(Segment& segment) : segment_(segment) { ++segment_.readers; }
  ReadPin(const ReadPin&) = delete;
  ReadPin& operator=(const ReadPin&) = delete;
  ~ReadPin() {
    if (--segment_.readers == 0 && segment_.unread != nullptr) segment_.unread->Set();
  }

 private:
  Segment& segment_;
};

}  // namespace cairn::kv
