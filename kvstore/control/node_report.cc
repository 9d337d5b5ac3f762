// Fields one after another behind a version, sealed.
#include "kvstore/control/node_report.h"

#include "kvstore/control/field_codec.h"

namespace cairn::kv {
namespace {

constexpr uint8_t kVersion = 1;
constexpr uint32_t kSpacesMax = 1 << 16;

Status Corrupt() {
  return Status(Code::kCorrupt, "a node's record in the control store is damaged");
}

template <typename Targets>
void AddTargets(FieldEncoder& out, const Targets& targets) {
  out.Number(targets.size());
  for (const TargetId target : targets) out.Fixed(target.value);
}

std::vector<TargetId> TakeTargets(FieldDecoder& in) {
  std::vector<TargetId> targets(in.Count(kTargetsMax));
  for (TargetId& target : targets) target = {in.Fixed<uint64_t>()};
  return targets;
}

}  // namespace

std::string EncodeReport(const NodeReport& report) {
  FieldEncoder out;
  out.Byte(kVersion);
  out.Number(report.entry.id.value);
  out.Text(report.entry.name);
  out.Text(report.entry.rack);
  out.Number(report.entry.addresses.size());
  for (const std::string& address : report.entry.addresses) out.Text(address);
  out.Number(report.entry.protocol_min);
  out.Number(report.entry.protocol_max);
  out.Fixed(report.instance);
  out.Number(report.map_epoch);
  out.Number(report.targets.size());
  for (const TargetReport& entry : report.targets) {
    out.Fixed(entry.target.id.value);
    out.Number(entry.target.capacity);
    out.Byte(entry.target.failed ? 1 : 0);
    out.Number(entry.free_bytes);
  }
  out.Seal();
  return out.bytes();
}

Result<NodeReport> DecodeReport(std::string_view bytes) {
  FieldDecoder in(bytes);
  if (!in.Unseal() || in.Byte() != kVersion) return Corrupt();
  NodeReport report;
  report.entry.id = {in.Number<uint32_t>()};
  report.entry.name = in.Text(kNodeTextMax);
  report.entry.rack = in.Text(kNodeTextMax);
  report.entry.addresses.resize(in.Count(kAddressesMax));
  for (std::string& address : report.entry.addresses) address = in.Text(kNodeTextMax);
  report.entry.protocol_min = in.Number<uint16_t>();
  report.entry.protocol_max = in.Number<uint16_t>();
  report.instance = in.Fixed<uint64_t>();
  report.map_epoch = in.Number<uint64_t>();
  report.targets.resize(in.Count(kTargetsMax));
  for (TargetReport& entry : report.targets) {
    entry.target.id = {in.Fixed<uint64_t>()};
    entry.target.capacity = in.Number<uint64_t>();
    entry.target.failed = in.Byte() != 0;
    entry.free_bytes = in.Number<uint64_t>();
  }
  const NodeEntry& entry = report.entry;
  const bool sound = entry.id != kNoNode && entry.protocol_min > 0 &&
                     entry.protocol_min <= entry.protocol_max;
  if (!in.whole() || !sound) return Corrupt();
  return report;
}

std::string EncodeWork(const NodeWork& work) {
  FieldEncoder out;
  out.Byte(kVersion);
  out.Number(work.vacated.size());
  for (const NodeWork::Vacated& vacated : work.vacated) {
    out.Fixed(vacated.target.value);
    out.Number(vacated.epoch);
  }
  out.Number(work.filled.size());
  for (const FilledPlace& place : work.filled) {
    out.Number(place.group);
    out.Fixed(place.target.value);
  }
  out.Seal();
  return out.bytes();
}

Result<NodeWork> DecodeWork(std::string_view bytes) {
  FieldDecoder in(bytes);
  if (!in.Unseal() || in.Byte() != kVersion) return Corrupt();
  NodeWork work;
  work.vacated.resize(in.Count(kTargetsMax));
  for (NodeWork::Vacated& vacated : work.vacated) {
    vacated.target = {in.Fixed<uint64_t>()};
    vacated.epoch = in.Number<uint64_t>();
  }
  work.filled.resize(in.Count(kIndexReplicas << kGroupBitsMax));
  for (FilledPlace& place : work.filled) {
    place.group = in.Number<uint32_t>();
    place.target = {in.Fixed<uint64_t>()};
  }
  if (!in.whole()) return Corrupt();
  return work;
}

std::string EncodeSlow(const SlowReport& report) {
  FieldEncoder out;
  out.Byte(kVersion);
  out.Number(report.asked);
  AddTargets(out, report.slow);
  out.Seal();
  return out.bytes();
}

Result<SlowReport> DecodeSlow(std::string_view bytes) {
  FieldDecoder in(bytes);
  if (!in.Unseal() || in.Byte() != kVersion) return Corrupt();
  SlowReport report;
  report.asked = in.Number<uint32_t>();
  report.slow = TakeTargets(in);
  if (!in.whole()) return Corrupt();
  return report;
}

std::string EncodeSetAside(const std::set<TargetId>& targets) {
  FieldEncoder out;
  out.Byte(kVersion);
  AddTargets(out, targets);
  out.Seal();
  return out.bytes();
}

Result<std::vector<TargetId>> DecodeSetAside(std::string_view bytes) {
  FieldDecoder in(bytes);
  if (!in.Unseal() || in.Byte() != kVersion) return Corrupt();
  std::vector<TargetId> targets = TakeTargets(in);
  if (!in.whole()) return Corrupt();
  return targets;
}

std::string EncodeSpaceUsage(const UsageBySpace& usage) {
  FieldEncoder out;
  out.Byte(kVersion);
  out.Number(usage.size());
  for (const auto& [space, bytes] : usage) {
    out.Fixed(space.high);
    out.Fixed(space.low);
    out.Number(bytes);
  }
  out.Seal();
  return out.bytes();
}

Result<UsageBySpace> DecodeSpaceUsage(std::string_view bytes) {
  FieldDecoder in(bytes);
  if (!in.Unseal() || in.Byte() != kVersion) return Corrupt();
  UsageBySpace usage;
  const uint32_t count = in.Count(kSpacesMax);
  for (uint32_t i = 0; i < count && in.fits(); ++i) {
    NamespaceId space;
    space.high = in.Fixed<uint64_t>();
    space.low = in.Fixed<uint64_t>();
    usage[space] = in.Number<uint64_t>();
  }
  if (!in.whole()) return Corrupt();
  return usage;
}

}  // namespace cairn::kv
