// A table without chains: what falls on the same place replaces what was there.
#include "kvstore/client/gone_blocks.h"

namespace cairn::kv {
namespace {

constexpr size_t kSlots = 65536;

uint64_t Fingerprint(const NamespaceId& space, const BlockId& id) {
  return (space.low ^ id.high) * 0x9e3779b97f4a7c15u ^ id.low;
}

}  // namespace

GoneBlocks::GoneBlocks() : gone_(kSlots) {}

void GoneBlocks::Remember(const NamespaceId& space, const BlockId& id, MissReason reason) {
  const uint64_t fingerprint = Fingerprint(space, id);
  gone_[fingerprint % kSlots] = {fingerprint, reason};
}

void GoneBlocks::Remember(const Manifest& manifest, MissReason reason) {
  for (const ManifestBlock& block : manifest.blocks) Remember(manifest.space, block.id, reason);
}

void GoneBlocks::Forget(const Manifest& manifest) {
  for (const ManifestBlock& block : manifest.blocks) {
    const uint64_t fingerprint = Fingerprint(manifest.space, block.id);
    Gone& gone = gone_[fingerprint % kSlots];
    if (gone.fingerprint == fingerprint) gone = {};
  }
}

MissReason GoneBlocks::Why(const NamespaceId& space, const BlockId& id) const {
  const uint64_t fingerprint = Fingerprint(space, id);
  const Gone& gone = gone_[fingerprint % kSlots];
  return gone.fingerprint == fingerprint ? gone.reason : MissReason::kNone;
}

MissReason GoneBlocks::WhyGone(const Manifest& manifest) const {
  const auto going = going_.find(manifest.stripe);
  if (going != going_.end()) return going->second;
  const MissReason reason = Why(manifest.space, manifest.blocks.front().id);
  return reason == MissReason::kNone ? MissReason::kAbsent : reason;
}

}  // namespace cairn::kv
