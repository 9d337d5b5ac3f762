// Since when this process is the home of a run, and what it may not do yet.
#pragma once

#include <cstdint>

#include "kvstore/base/time.h"

namespace cairn::kv {

// Of the runs with one group hash.
struct Tenure {
  bool here = true;  // This process is their home.
  uint64_t since = 0;  // Another number each time that it becomes it: what it knew before is void.
  // Before this nothing is evicted: leases that an earlier home gave may be out.
  Instant evicts_from = {};
  // Before this no lease is given: an earlier home may still take itself for the home, and evict.
  Instant leases_from = {};
  // False while the replica here may lack what others have: what is not in it may be filed.
  bool whole = true;
};

class HomeTenure {
 public:
  virtual ~HomeTenure() = default;
  virtual Tenure Of(uint16_t group_hash) const = 0;
};

// Of one process, which was always the home of all its runs.
class SoleHome final : public HomeTenure {
 public:
  Tenure Of(uint16_t) const override { return {}; }
};

}  // namespace cairn::kv
