// Sorted places per run; least recently used runs go first.
#include "kvstore/client/run_cache.h"

#include <algorithm>

namespace cairn::kv {

std::optional<StripeUse> KnownStripe::NoteHit(UnixMillis now) {
  const auto seconds = static_cast<uint32_t>(now.value / 1000);
  if (touched_seconds == seconds) return std::nullopt;
  touched_seconds = seconds;
  if (manifest.retention.kind == RetentionKind::kRefreshed) {
    const UnixMillis refreshed{now.value + int64_t{manifest.retention.ttl_seconds} * 1000};
    expires_at = std::max(expires_at, refreshed);
  }
  return StripeUse{.expires_at = expires_at, .last_access = seconds, .keep_until = 0};
}

void KnownRun::Add(IndexedStripe stripe) {
  const auto is_same = [&](const KnownStripePtr& known) {
    return known->manifest.stripe == stripe.manifest.stripe;
  };
  const auto same = std::find_if(stripes_.begin(), stripes_.end(), is_same);
  if (same != stripes_.end()) {
    (*same)->expires_at = std::max((*same)->expires_at, stripe.expires_at);
    if ((*same)->manifest.generation >= stripe.manifest.generation) return;
    // Reads in flight hold the old one, which stays as it is.
    const auto newer = std::make_shared<KnownStripe>(**same);
    newer->manifest = std::move(stripe.manifest);
    for (Place& place : places_) {
      if (place.stripe == *same) place.stripe = newer;
    }
    *same = newer;
    return;
  }
  auto known = std::make_shared<KnownStripe>();
  known->manifest = std::move(stripe.manifest);
  known->expires_at = stripe.expires_at;
  known->position = stripe.position;
  for (uint32_t i = 0; i < known->manifest.blocks.size(); ++i) {
    places_.push_back({known->manifest.blocks[i].id, known, i});
  }
  std::stable_sort(places_.begin(), places_.end(),
                   [](const Place& a, const Place& b) { return a.id < b.id; });
  stripes_.push_back(std::move(known));
}

void KnownRun::Remove(StripeId stripe) {
  for (const KnownStripePtr& known : stripes_) {
    if (known->manifest.stripe == stripe) known->gone = true;
  }
  std::erase_if(places_, [](const Place& place) { return place.stripe->gone; });
  std::erase_if(stripes_, [](const KnownStripePtr& known) { return known->gone; });
}

std::span<const KnownRun::Place> KnownRun::Find(BlockId id) const {
  const auto first =
      std::lower_bound(places_.begin(), places_.end(), id,
                       [](const Place& place, const BlockId& wanted) { return place.id < wanted; });
  auto last = first;
  while (last != places_.end() && last->id == id) ++last;
  return {first, last};
}

uint64_t KnownRun::memory_bytes() const {
  uint64_t bytes = 256 + places_.capacity() * sizeof(Place);
  for (const KnownStripePtr& known : stripes_) {
    const Manifest& manifest = known->manifest;
    bytes += sizeof(KnownStripe) + 64 + manifest.targets.capacity() * sizeof(TargetId) +
             manifest.blocks.capacity() * sizeof(ManifestBlock) +
             manifest.piece_checksums.capacity() * sizeof(uint64_t);
  }
  return bytes;
}

KnownRunPtr RunCache::Find(const RunKey& key) {
  const auto found = runs_.find(key);
  if (found == runs_.end()) return nullptr;
  ages_.splice(ages_.begin(), ages_, found->second.age);
  return found->second.run;
}

KnownRunPtr RunCache::Insert(const RunKey& key, KnownRun run) {
  Forget(key);
  ages_.push_front(key);
  Entry& entry = runs_[key];
  entry.run = std::make_shared<KnownRun>(std::move(run));
  const KnownRunPtr kept = entry.run;
  entry.age = ages_.begin();
  Account(entry);
  Trim();
  return kept;
}

void RunCache::Add(const RunKey& key, IndexedStripe stripe) {
  const auto found = runs_.find(key);
  if (found == runs_.end()) return;
  found->second.run->Add(std::move(stripe));
  Account(found->second);
}

void RunCache::Remove(const RunKey& key, StripeId stripe) {
  const auto found = runs_.find(key);
  if (found == runs_.end()) return;
  found->second.run->Remove(stripe);
  Account(found->second);
}

void RunCache::Forget(const RunKey& key) {
  const auto found = runs_.find(key);
  if (found == runs_.end()) return;
  bytes_ -= found->second.bytes;
  ages_.erase(found->second.age);
  runs_.erase(found);
}

void RunCache::Account(Entry& entry) {
  bytes_ -= entry.bytes;
  entry.bytes = entry.run->memory_bytes() + sizeof(Entry) + 128;
  bytes_ += entry.bytes;
}

void RunCache::Trim() {
  while (bytes_ > bytes_max_ && runs_.size() > 1) {
    const RunKey oldest = ages_.back();
    Forget(oldest);
  }
}

}  // namespace cairn::kv
