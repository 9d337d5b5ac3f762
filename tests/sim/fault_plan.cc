// Draws faults from a seed.
#include "tests/sim/fault_plan.h"

#include <algorithm>

#include "kvstore/base/check.h"

namespace cairn::sim {

FaultPlan::FaultPlan(SimClock& clock, const FaultPlanOptions& options)
    : clock_(clock), options_(options), random_(options.seed) {
  KV_CHECK(options.targets > 0);
  std::vector<FaultKind> kinds = options.kinds;
  if (kinds.empty()) {
    for (uint32_t i = 0; i < kFaultKindCount; ++i) kinds.push_back(static_cast<FaultKind>(i));
  }
  for (const FaultKind kind : kinds) {
    if (random_.Chance(1, 2)) enabled_.push_back(kind);
  }
  if (enabled_.empty()) enabled_.push_back(kinds[random_.Below(kinds.size())]);
}

std::optional<Fault> FaultPlan::Next() {
  const FaultKind kind = enabled_[random_.Below(enabled_.size())];
  std::vector<uint32_t> candidates;
  for (uint32_t target = 0; target < options_.targets; ++target) {
    if (MayFail(target, kind)) candidates.push_back(target);
  }
  if (candidates.empty()) return std::nullopt;
  const uint32_t target = candidates[random_.Below(candidates.size())];
  if (kind != FaultKind::kSlow) faulty_.insert(target);
  clock_.Note(TraceKind::kFault, target, static_cast<uint64_t>(kind), faulty_.size());
  return Fault{kind, target};
}

bool FaultPlan::enabled(FaultKind kind) const {
  return std::find(enabled_.begin(), enabled_.end(), kind) != enabled_.end();
}

bool FaultPlan::MayFail(uint32_t target, FaultKind kind) const {
  if (kind == FaultKind::kSlow || faulty_.contains(target)) return true;
  if (budget_ != nullptr) return budget_(target, faulty_);
  return faulty_.size() < options_.faulty_targets_max;
}

bool ApplyToDisk(FaultKind kind, SimDisk& disk) {
  constexpr uint32_t kOften = 200'000;
  switch (kind) {
    case FaultKind::kReadErrors: disk.SetFaults({.read_error = kOften}); return true;
    case FaultKind::kWriteErrors: disk.SetFaults({.write_error = kOften}); return true;
    case FaultKind::kBitFlips: disk.SetFaults({.bit_flip = kOften}); return true;
    case FaultKind::kTornWrites: disk.SetFaults({.torn_write = kOften}); return true;
    case FaultKind::kLostWrites: disk.SetFaults({.lost_write = kOften}); return true;
    case FaultKind::kMisdirectedWrites: disk.SetFaults({.misdirected_write = kOften}); return true;
    case FaultKind::kSlow: disk.SetFaults({.slow = kOften}); return true;
    case FaultKind::kFull: disk.SetFull(true); return true;
    case FaultKind::kProcessCrash: disk.Crash(CrashMode::kProcess); return true;
    case FaultKind::kPowerCut: disk.Crash(CrashMode::kPowerCut); return true;
    case FaultKind::kWipe: disk.Wipe(); return true;
    case FaultKind::kPartition: return false;
  }
  return false;
}

void HealDisk(SimDisk& disk) {
  disk.SetFaults({});
  disk.SetFull(false);
  if (disk.down()) disk.Restart();
}

}  // namespace cairn::sim
