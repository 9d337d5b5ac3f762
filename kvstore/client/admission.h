// Whether a new stripe is written at all: spares flash what will hardly be read, or what would
// wear it out too soon. Decided once per stripe. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "kvstore/base/time.h"
#include "kvstore/types/ids.h"

namespace cairn::kv {

enum class AdmissionPolicy : uint8_t {
  kAll,
  // A stripe is written when its first block is put for the second time: so one-time prompts are
  // not.
  kSecondSight,
  // At most so many drive writes a day, saved up for an hour; what comes beyond is not written.
  kWriteBudget,
};

struct AdmissionOptions {
  AdmissionPolicy policy = AdmissionPolicy::kAll;
  double drive_writes_per_day = 1;        // kWriteBudget: of all targets' capacity. Above 0.
  uint32_t sightings_max = 1024 * 1024;   // kSecondSight: remembered, 4 bytes each. At least 1.
};

class Admission {
 public:
  // `capacity_bytes` is of all targets, raw. `now` is when saving up begins.
  Admission(AdmissionOptions options, uint64_t capacity_bytes, Instant now);

  // `first` is the stripe's first block, `bytes` what all its shards will take. An admitted stripe
  // has used its share of the budget, written or not.
  bool Admit(const NamespaceId& space, BlockId first, uint64_t bytes, Instant now);

  uint64_t memory_bytes() const { return seen_.size() * sizeof(uint32_t); }

 private:
  bool WasSeen(const NamespaceId& space, BlockId first);
  bool FitsBudget(uint64_t bytes, Instant now);

  const AdmissionOptions options_;
  const double bytes_per_nano_;
  const double saved_max_;
  double saved_ = 0;  // Bytes that may be written now.
  Instant saved_at_;
  std::vector<uint32_t> seen_;  // Fingerprints, each in the one place its id leads to. 0: none.
};

}  // namespace cairn::kv
