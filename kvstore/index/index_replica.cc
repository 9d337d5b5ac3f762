// Keeps the manifest and the state of each stripe in one batch, and the states in memory.
#include "kvstore/index/index_replica.h"

#include <algorithm>
#include <utility>

namespace cairn::kv {
namespace {

constexpr size_t kScanLimit = 1024;
constexpr size_t kFlushLimit = 1024;

std::string AsString(const Bytes& bytes) { return std::string(AsText(bytes.span())); }

}  // namespace

Task<Result<std::unique_ptr<IndexReplica>>> IndexReplica::Open(MetadataStore& metadata, Log& log) {
  std::unique_ptr<IndexReplica> replica(new IndexReplica(metadata));
  const std::string prefix(kStatePrefix);
  std::string after;
  while (true) {
    auto page = co_await metadata.Scan(prefix, after, kScanLimit);
    if (!page.ok()) co_return page.status();
    for (const MetadataStore::Entry& entry : page.value()) {
      const std::optional<StripeId> stripe = StripeOfStateKey(entry.key);
      const Result<StripeState> state = DecodeState(entry.value);
      if (stripe && state.ok()) {
        replica->stripes_.emplace(*stripe, state.value());
      } else {
        ++replica->damaged_records_;
      }
    }
    if (page.value().size() < kScanLimit) break;
    after = page.value().back().key;
  }
  if (replica->damaged_records_ > 0) {
    log.Warning("index: skipped " + std::to_string(replica->damaged_records_) + " damaged records");
  }
  co_return std::move(replica);
}

Task<Status> IndexReplica::Publish(IndexedStripe stripe, uint32_t now_seconds,
                                   Durability durability) {
  const Manifest& manifest = stripe.manifest;
  const StripeState state{.space = manifest.space,
                          .run = manifest.run,
                          .expires_at = stripe.expires_at,
                          .last_access = now_seconds,
                          .position = stripe.position,
                          .ttl_seconds = manifest.retention.ttl_seconds,
                          .kind = manifest.retention.kind};
  MetadataBatch batch;
  batch.Put(ManifestKey({manifest.space, manifest.run, manifest.stripe}),
            AsString(EncodeManifest(manifest)));
  batch.Put(StateKey(manifest.stripe), EncodeState(state));
  KV_CO_RETURN_IF_ERROR(co_await metadata_.Write(std::move(batch)));
  stripes_.insert_or_assign(manifest.stripe, state);
  if (durability == Durability::kPowerCut) co_return co_await metadata_.Sync();
  co_return Status();
}

Task<Result<std::vector<IndexedStripe>>> IndexReplica::LookUp(NamespaceId space, RunId run) {
  const std::string prefix = RunPrefix(space, run);
  std::vector<IndexedStripe> found;
  std::string after;
  while (true) {
    auto page = co_await metadata_.Scan(prefix, after, kScanLimit);
    if (!page.ok()) co_return page.status();
    for (const MetadataStore::Entry& entry : page.value()) {
      Result<Manifest> manifest = DecodeManifest(AsBytes(entry.value));
      if (!manifest.ok() || manifest.value().space != space || manifest.value().run != run) {
        ++damaged_records_;  // As good as forgotten: another replica has it, or it is a miss.
        continue;
      }
      const StripeState* state = Find(manifest.value().stripe);
      if (state == nullptr) continue;  // Withdrawn while we read.
      found.push_back({std::move(manifest).value(), state->expires_at, state->position});
    }
    if (page.value().size() < kScanLimit) break;
    after = page.value().back().key;
  }
  co_return std::move(found);
}

Task<Status> IndexReplica::Withdraw(StripeName name) {
  stripes_.erase(name.stripe);
  touched_.erase(name.stripe);
  MetadataBatch batch;
  batch.Delete(ManifestKey(name));
  batch.Delete(StateKey(name.stripe));
  co_return co_await metadata_.Write(std::move(batch));
}

void IndexReplica::Touch(StripeId stripe, uint32_t now_seconds, UnixMillis expires_at) {
  const auto found = stripes_.find(stripe);
  if (found == stripes_.end()) return;
  StripeState& state = found->second;
  state.hit = true;
  if (state.last_access >= now_seconds && state.expires_at >= expires_at) return;
  state.last_access = std::max(state.last_access, now_seconds);
  state.expires_at = std::max(state.expires_at, expires_at);
  touched_.insert(stripe);
}

Task<Status> IndexReplica::Flush() {
  while (!touched_.empty()) {
    MetadataBatch batch;
    while (!touched_.empty() && batch.changes.size() < kFlushLimit) {
      const auto first = touched_.begin();
      if (const StripeState* state = Find(*first)) batch.Put(StateKey(*first), EncodeState(*state));
      touched_.erase(first);
    }
    if (!batch.empty()) KV_CO_RETURN_IF_ERROR(co_await metadata_.Write(std::move(batch)));
  }
  co_return Status();
}

Task<Status> IndexReplica::SaveSpace(SpaceRecord record) {
  MetadataBatch batch;
  batch.Put(SpaceKey(record.name), EncodeSpace(record));
  KV_CO_RETURN_IF_ERROR(co_await metadata_.Write(std::move(batch)));
  co_return co_await metadata_.Sync();
}

Task<Result<std::vector<SpaceRecord>>> IndexReplica::ListSpaces() {
  std::vector<SpaceRecord> spaces;
  const std::string prefix(kSpacePrefix);
  std::string after;
  while (true) {
    auto page = co_await metadata_.Scan(prefix, after, kScanLimit);
    if (!page.ok()) co_return page.status();
    for (const MetadataStore::Entry& entry : page.value()) {
      Result<SpaceRecord> record = DecodeSpace(entry.value);
      if (record.ok()) {
        spaces.push_back(std::move(record).value());
      } else {
        ++damaged_records_;
      }
    }
    if (page.value().size() < kScanLimit) break;
    after = page.value().back().key;
  }
  co_return std::move(spaces);
}

const StripeState* IndexReplica::Find(StripeId stripe) const {
  const auto found = stripes_.find(stripe);
  return found == stripes_.end() ? nullptr : &found->second;
}

uint64_t IndexReplica::memory_bytes() const {
  // A node of std::map: the value, three pointers and a colour, and the allocator's header.
  constexpr uint64_t kNode = sizeof(std::pair<const StripeId, StripeState>) + 40;
  return stripes_.size() * kNode + touched_.size() * (sizeof(StripeId) + 40);
}

}  // namespace cairn::kv
