// Packs states; namespaces are numbered while they have stripes.
#include "kvstore/index/state_table.h"

#include <algorithm>
#include <limits>

#include "kvstore/types/limits.h"

namespace cairn::kv {
namespace {

constexpr int64_t kMillisMax = (int64_t{1} << 42) - 1;
constexpr uint32_t kPositionMax = (1u << 22) - 1;
constexpr uint32_t kTtlMax = (1u << 28) - 1;
constexpr size_t kSpacesMax = size_t{1} << 16;

static_assert(kStripePayloadMax / kSectorSize < 1 << 15);

uint64_t MillisOf(UnixMillis time) {
  return static_cast<uint64_t>(std::clamp<int64_t>(time.value, 0, kMillisMax));
}

}  // namespace

std::optional<StripeState> StateTable::Find(StripeId stripe) const {
  const Packed* packed = table_.Find(stripe);
  return packed == nullptr ? std::nullopt : std::optional(Unpack(*packed));
}

uint64_t StateTable::memory_bytes() const {
  constexpr uint64_t kNode = sizeof(std::pair<const NamespaceId, uint16_t>) + 40;
  return table_.memory_bytes() + spaces_.capacity() * sizeof(Space) + places_.size() * kNode;
}

Status StateTable::Set(StripeId stripe, const StripeState& state) {
  const std::optional<uint16_t> space = PlaceOf(state.space);
  if (!space) return Status(Code::kOverloaded, "the index holds as many namespaces as it can");
  Packed packed;
  packed.expires_at = MillisOf(state.expires_at) & kMillisMax;
  packed.position = std::min(state.position, kPositionMax) & kPositionMax;
  packed.ttl_seconds = std::min(state.ttl_seconds, kTtlMax) & kTtlMax;
  packed.payload_sectors =
      std::min<uint64_t>(state.payload_bytes, kStripePayloadMax) / kSectorSize & 0x7fff;
  packed.used = 1;
  packed.fixed = state.kind == RetentionKind::kFixed ? 1 : 0;
  packed.hit = state.hit ? 1 : 0;
  packed.space = *space;
  packed.last_access = state.last_access;
  packed.keep_until = state.keep_until;
  if (const Packed* old = table_.Find(stripe)) Leave(static_cast<uint16_t>(old->space));
  table_.Set(stripe, packed);
  return Status();
}

bool StateTable::Erase(StripeId stripe) {
  const Packed* packed = table_.Find(stripe);
  if (packed == nullptr) return false;
  Leave(static_cast<uint16_t>(packed->space));
  return table_.Erase(stripe);
}

bool StateTable::Raise(StripeId stripe, const StripeUse& use) {
  Packed* packed = table_.Find(stripe);
  if (packed == nullptr) return false;
  const uint64_t expires_at = MillisOf(use.expires_at);
  if (packed->hit == 1 && packed->expires_at >= expires_at &&
      packed->last_access >= use.last_access && packed->keep_until >= use.keep_until) {
    return false;
  }
  packed->hit = 1;
  packed->expires_at = std::max<uint64_t>(packed->expires_at, expires_at) & kMillisMax;
  packed->last_access = std::max(packed->last_access, use.last_access);
  packed->keep_until = std::max(packed->keep_until, use.keep_until);
  return true;
}

bool StateTable::IsDirty(StripeId stripe) const {
  const Packed* packed = table_.Find(stripe);
  return packed != nullptr && packed->dirty == 1;
}

void StateTable::SetDirty(StripeId stripe, bool dirty) {
  if (Packed* packed = table_.Find(stripe)) packed->dirty = dirty ? 1 : 0;
}

StripeState StateTable::Unpack(const Packed& packed) const {
  return {.space = spaces_[packed.space].id,
          .expires_at = {static_cast<int64_t>(packed.expires_at)},
          .last_access = packed.last_access,
          .keep_until = packed.keep_until,
          .position = static_cast<uint32_t>(packed.position),
          .ttl_seconds = static_cast<uint32_t>(packed.ttl_seconds),
          .payload_bytes = static_cast<uint32_t>(packed.payload_sectors * kSectorSize),
          .kind = packed.fixed == 1 ? RetentionKind::kFixed : RetentionKind::kRefreshed,
          .hit = packed.hit == 1};
}

// Counts one stripe more.
std::optional<uint16_t> StateTable::PlaceOf(const NamespaceId& space) {
  auto found = places_.find(space);
  if (found == places_.end()) {
    size_t place = spaces_.size();
    if (places_.size() < spaces_.size()) {
      const auto is_free = [](const Space& known) { return known.stripes == 0; };
      const auto free = std::find_if(spaces_.begin(), spaces_.end(), is_free);
      place = static_cast<size_t>(free - spaces_.begin());
    }
    if (place == kSpacesMax) return std::nullopt;
    if (place == spaces_.size()) spaces_.emplace_back();
    spaces_[place] = {space, 0};
    found = places_.emplace(space, static_cast<uint16_t>(place)).first;
  }
  ++spaces_[found->second].stripes;
  return found->second;
}

void StateTable::Leave(uint16_t space) {
  if (--spaces_[space].stripes == 0) places_.erase(spaces_[space].id);
}

}  // namespace cairn::kv
