// Entries grouped by their numbers, so that adding or changing one touches one part.
#include "kvstore/control/map_codec.h"

#include <functional>

#include "kvstore/base/checksum.h"
#include "kvstore/control/field_codec.h"

namespace cairn::kv {
namespace {

constexpr uint32_t kHeadMagic = 0x70616d63;  // "cmap"
constexpr uint8_t kVersion = 1;
constexpr uint16_t kNoSlot = UINT16_MAX;

// How many numbers (node ids, slots, set ids, group indexes) make one part.
constexpr uint32_t kNodesPerPart = 256;
constexpr uint32_t kTargetsPerPart = 4096;
constexpr uint32_t kSetsPerPart = 2048;
constexpr uint32_t kGroupsPerPart = 8192;

enum class PartKind : uint8_t { kNodes = 1, kTargets = 2, kSets = 3, kGroups = 4 };

Status Corrupt(const std::string& what) { return Status(Code::kCorrupt, "cluster map: " + what); }

std::string NameOf(std::string_view bytes) {
  const uint64_t checksum = Checksum(AsBytes(bytes));
  std::string name;
  for (int shift = 60; shift >= 0; shift -= 4) {
    name.push_back("0123456789abcdef"[checksum >> shift & 15]);
  }
  return name;
}

uint8_t FlagsOf(MemberState state, bool draining) {
  return static_cast<uint8_t>(static_cast<uint8_t>(state) | (draining ? 4 : 0));
}

// --- Entries -----------------------------------------------------------------

void Add(FieldEncoder& out, const NodeEntry& node) {
  out.Number(node.id.value);
  out.Byte(FlagsOf(node.state, node.draining));
  out.Number(node.protocol_min);
  out.Number(node.protocol_max);
  out.Text(node.name);
  out.Text(node.rack);
  out.Number(node.addresses.size());
  for (const std::string& address : node.addresses) out.Text(address);
}

void Take(FieldDecoder& in, NodeEntry& node) {
  node.id = {in.Number<uint32_t>()};
  const uint8_t flags = in.Byte();
  node.state = static_cast<MemberState>(flags & 3);
  node.draining = (flags & 4) != 0;
  node.protocol_min = in.Number<uint16_t>();
  node.protocol_max = in.Number<uint16_t>();
  node.name = in.Text(kNodeTextMax);
  node.rack = in.Text(kNodeTextMax);
  node.addresses.resize(in.Count(kAddressesMax));
  for (std::string& address : node.addresses) address = in.Text(kNodeTextMax);
}

void Add(FieldEncoder& out, const TargetEntry& target) {
  out.Fixed(target.id.value);
  out.Number(target.slot);
  out.Number(target.node.value);
  out.Number(target.capacity);
  out.Byte(FlagsOf(target.state, target.draining));
  out.Byte(target.weight_percent);
  out.Number(target.since);
}

void Take(FieldDecoder& in, TargetEntry& target) {
  target.id = {in.Fixed<uint64_t>()};
  target.slot = in.Number<uint16_t>();
  target.node = {in.Number<uint32_t>()};
  target.capacity = in.Number<uint64_t>();
  const uint8_t flags = in.Byte();
  target.state = static_cast<MemberState>(flags & 3);
  target.draining = (flags & 4) != 0;
  target.weight_percent = in.Byte();
  target.since = in.Number<uint64_t>();
}

// Targets are named by their slots: two bytes instead of eight.
using SlotOf = std::function<uint16_t(TargetId)>;
using TargetAt = std::function<TargetId(uint16_t)>;

void Add(FieldEncoder& out, const StripeSet& set, const SlotOf& slot_of) {
  out.Number(set.id);
  out.Number(set.weight);
  out.Number(set.targets.size());
  for (const TargetId target : set.targets) out.Fixed(slot_of(target));
}

void Take(FieldDecoder& in, StripeSet& set, const TargetAt& target_at) {
  set.id = in.Number<uint32_t>();
  set.weight = in.Number<uint32_t>();
  set.targets.resize(in.Count(kShardsMax));
  for (TargetId& target : set.targets) target = target_at(in.Fixed<uint16_t>());
}

void Add(FieldEncoder& out, const Group& group, const SlotOf& slot_of) {
  for (const TargetId target : group.targets) out.Fixed(slot_of(target));
  out.Byte(group.filling);
  out.Number(group.since);
}

void Take(FieldDecoder& in, Group& group, const TargetAt& target_at) {
  for (TargetId& target : group.targets) target = target_at(in.Fixed<uint16_t>());
  group.filling = in.Byte();
  group.since = in.Number<uint64_t>();
}

// --- Parts -------------------------------------------------------------------

// One part for each `numbers_per_part` numbers in which there is an entry.
template <typename Entry, typename NumberOf, typename AddEntry>
void AddParts(EncodedMap& encoded, PartKind kind, std::span<const Entry> entries,
              uint32_t numbers_per_part, NumberOf number_of, AddEntry add) {
  size_t begin = 0;
  while (begin < entries.size()) {
    const uint64_t part = number_of(begin) / numbers_per_part;
    size_t end = begin;
    while (end < entries.size() && number_of(end) / numbers_per_part == part) ++end;
    FieldEncoder out;
    out.Byte(static_cast<uint8_t>(kind));
    out.Number(end - begin);
    for (size_t i = begin; i < end; ++i) add(out, entries[i]);
    KV_CHECK(out.bytes().size() <= kMapPartSizeMax);
    encoded.parts.push_back({NameOf(out.bytes()), out.bytes()});
    begin = end;
  }
}

template <typename Entry, typename TakeEntry>
Status TakePart(FieldDecoder& in, uint32_t count_max, std::vector<Entry>& entries, TakeEntry take) {
  const uint32_t count = in.Count(count_max);
  for (uint32_t i = 0; i < count && in.fits(); ++i) take(in, entries.emplace_back());
  return in.whole() ? Status() : Corrupt("a part of the wrong length");
}

// Decodes parts in their order: targets before what names them.
class Parts {
 public:
  explicit Parts(MapContent& content) : content_(content) {}

  Status Take(std::string_view bytes) {
    FieldDecoder in(bytes);
    const auto kind = static_cast<PartKind>(in.Byte());
    const TargetAt target_at = [this](uint16_t slot) { return TargetAtSlot(slot); };
    switch (kind) {
      case PartKind::kNodes:
        return TakePart(in, kNodesPerPart, content_.nodes,
                        [](FieldDecoder& from, NodeEntry& node) { kv::Take(from, node); });
      case PartKind::kTargets:
        KV_RETURN_IF_ERROR(
            TakePart(in, kTargetsPerPart, content_.targets,
                     [](FieldDecoder& from, TargetEntry& target) { kv::Take(from, target); }));
        for (const TargetEntry& target : content_.targets) by_slot_[target.slot] = target.id;
        return Status();
      case PartKind::kSets:
        return TakePart(in, kSetsPerPart, content_.sets, [&](FieldDecoder& from, StripeSet& set) {
          kv::Take(from, set, target_at);
        });
      case PartKind::kGroups:
        return TakePart(in, kGroupsPerPart, content_.groups, [&](FieldDecoder& from, Group& group) {
          kv::Take(from, group, target_at);
        });
    }
    return Corrupt("a part of an unknown kind");
  }

 private:
  // A slot that is not there becomes an id that is not there: Create refuses it.
  TargetId TargetAtSlot(uint16_t slot) const {
    return slot == kNoSlot ? kNoTarget : by_slot_[slot];
  }

  MapContent& content_;
  std::vector<TargetId> by_slot_ = std::vector<TargetId>(kTargetsMax + 1, TargetId{UINT64_MAX});
};

std::string EncodeHead(const ClusterMap& map, const std::vector<MapPart>& parts) {
  FieldEncoder out;
  out.Fixed(kHeadMagic);
  out.Byte(kVersion);
  out.Fixed(map.epoch());
  out.Byte(map.shape().group_bits);
  out.Byte(map.shape().data_shards);
  out.Byte(map.shape().parity_shards);
  out.Byte(static_cast<uint8_t>(map.shape().domain));
  out.Number(parts.size());
  for (const MapPart& part : parts) out.Text(part.name);
  out.Seal();
  return out.bytes();
}

}  // namespace

EncodedMap EncodeMap(const ClusterMap& map) {
  const SlotOf slot_of = [&map](TargetId id) {
    const TargetEntry* target = map.FindTarget(id);
    return target != nullptr ? target->slot : kNoSlot;
  };
  EncodedMap encoded;
  AddParts(encoded, PartKind::kNodes, map.nodes(), kNodesPerPart,
           [&](size_t i) { return map.nodes()[i].id.value; },
           [](FieldEncoder& out, const NodeEntry& node) { Add(out, node); });
  AddParts(encoded, PartKind::kTargets, map.targets(), kTargetsPerPart,
           [&](size_t i) { return map.targets()[i].slot; },
           [](FieldEncoder& out, const TargetEntry& target) { Add(out, target); });
  AddParts(encoded, PartKind::kSets, map.sets(), kSetsPerPart,
           [&](size_t i) { return map.sets()[i].id; },
           [&](FieldEncoder& out, const StripeSet& set) { Add(out, set, slot_of); });
  AddParts(encoded, PartKind::kGroups, map.groups(), kGroupsPerPart, [](size_t i) { return i; },
           [&](FieldEncoder& out, const Group& group) { Add(out, group, slot_of); });
  encoded.head = EncodeHead(map, encoded.parts);
  return encoded;
}

Result<MapHead> DecodeMapHead(std::string_view bytes) {
  FieldDecoder in(bytes);
  if (!in.Unseal()) return Corrupt("the head fails its checksum");
  if (in.Fixed<uint32_t>() != kHeadMagic) return Corrupt("not the head of a map");
  if (in.Byte() != kVersion) return Corrupt("a head of an unknown version");
  MapHead head;
  head.epoch = in.Fixed<uint64_t>();
  head.shape.group_bits = in.Byte();
  head.shape.data_shards = in.Byte();
  head.shape.parity_shards = in.Byte();
  head.shape.domain = static_cast<FailureDomain>(in.Byte() & 1);
  // Parts are by numbers, so a node id part may hold one node only.
  head.part_names.resize(in.Count(kNodesMax + kTargetsMax / kTargetsPerPart +
                                  kStripeSetsMax / kSetsPerPart + 16));
  for (std::string& name : head.part_names) name = in.Text(16);
  if (!in.whole()) return Corrupt("a head of the wrong length");
  return head;
}

Result<std::shared_ptr<const ClusterMap>> DecodeMap(const MapHead& head,
                                                    std::span<const std::string_view> parts) {
  if (parts.size() != head.part_names.size()) return Corrupt("parts are missing");
  MapContent content;
  content.epoch = head.epoch;
  content.shape = head.shape;
  Parts decoder(content);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (NameOf(parts[i]) != head.part_names[i]) return Corrupt("a part fails its checksum");
    KV_RETURN_IF_ERROR(decoder.Take(parts[i]));
  }
  auto map = ClusterMap::Create(std::move(content));
  if (!map.ok()) return Status(Code::kCorrupt, map.status().message());
  return map;
}

std::string EncodeWholeMap(const ClusterMap& map) {
  const EncodedMap encoded = EncodeMap(map);
  FieldEncoder out;
  out.Text(encoded.head);
  for (const MapPart& part : encoded.parts) out.Text(part.bytes);
  return out.bytes();
}

Result<std::shared_ptr<const ClusterMap>> DecodeWholeMap(std::string_view bytes) {
  FieldDecoder in(bytes);
  KV_ASSIGN_OR_RETURN(const MapHead head, DecodeMapHead(in.View(kMapPartSizeMax)));
  std::vector<std::string_view> parts;
  for (size_t i = 0; i < head.part_names.size(); ++i) parts.push_back(in.View(kMapPartSizeMax));
  if (!in.whole()) return Corrupt("of the wrong length");
  return DecodeMap(head, parts);
}

}  // namespace cairn::kv
