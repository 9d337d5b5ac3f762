// Keeps the manifest and the state of each stripe in one batch, and the states in memory.
#include "kvstore/index/index_replica.h"

#include <algorithm>
#include <utility>

#include "kvstore/metadata/metadata_scan.h"

namespace cairn::kv {
namespace {

constexpr size_t kScanLimit = 1024;
constexpr size_t kFlushLimit = 1024;

// Of all blocks, each in whole sectors.
uint32_t PayloadBytes(const Manifest& manifest) {
  if (manifest.blocks.empty()) return 0;
  const ManifestBlock& last = manifest.blocks.back();
  return static_cast<uint32_t>(AlignUp(last.offset + last.size, kSectorSize));
}

StripeUse UseOf(const StripeState& state) {
  return {.expires_at = state.expires_at,
          .last_access = state.last_access,
          .keep_until = state.keep_until};
}

std::string AsString(const Bytes& bytes) { return std::string(AsText(bytes.span())); }

}  // namespace

Task<Result<std::unique_ptr<IndexReplica>>> IndexReplica::Open(MetadataStore& metadata,
                                                               Workers& workers, Log& log) {
  std::unique_ptr<IndexReplica> opened(new IndexReplica(metadata, workers));
  IndexReplica& replica = *opened;
  const auto load_record = [&](const MetadataStore::Entry& entry) { replica.LoadRecord(entry); };
  const auto load_use = [&](const MetadataStore::Entry& entry) { replica.LoadUse(entry); };
  const std::string states(kStatePrefix);
  KV_CO_RETURN_IF_ERROR(co_await ScanAll(workers, metadata, states, load_record));
  const std::string uses(kUsePrefix);
  KV_CO_RETURN_IF_ERROR(co_await ScanAll(workers, metadata, uses, load_use));
  if (replica.damaged_records_ > 0) {
    log.Warning("index: skipped " + std::to_string(replica.damaged_records_) + " damaged records");
  }
  co_return std::move(opened);
}

void IndexReplica::LoadRecord(const MetadataStore::Entry& entry) {
  const std::optional<StripeId> stripe = StripeOfKey(entry.key);
  const Result<StripeRecord> record = DecodeRecord(entry.value);
  const bool loaded = stripe && record.ok() && states_.Set(*stripe, record.value().state).ok();
  if (!loaded) ++damaged_records_;
}

void IndexReplica::LoadUse(const MetadataStore::Entry& entry) {
  const std::optional<StripeId> stripe = StripeOfKey(entry.key);
  const Result<StripeUse> use = DecodeUse(entry.value);
  if (stripe && use.ok()) {
    states_.Raise(*stripe, use.value());
  } else {
    ++damaged_records_;
  }
}

Task<Status> IndexReplica::Publish(IndexedStripe stripe, uint32_t now_seconds,
                                   Durability durability) {
  const Manifest& manifest = stripe.manifest;
  StripeState state{.space = manifest.space,
                          .expires_at = stripe.expires_at,
                          .last_access = stripe.last_access,
                          .keep_until = stripe.keep_until,
                          .position = stripe.position,
                          .ttl_seconds = manifest.retention.ttl_seconds,
                          .payload_bytes = PayloadBytes(manifest),
                          .kind = manifest.retention.kind,
                          .hit = stripe.hit};
  if (const std::optional<StripeState> known = states_.Find(manifest.stripe)) {
    state.last_access = std::max(state.last_access, known->last_access);
    state.hit = state.hit || known->hit;
    state.expires_at = std::max(state.expires_at, known->expires_at);
    state.keep_until = std::max(state.keep_until, known->keep_until);
  }
  if (state.last_access == 0) state.last_access = now_seconds;
  const StripeRecord record{.run = manifest.run, .state = state};
  MetadataBatch batch;
  batch.Put(ManifestKey({manifest.space, manifest.run, manifest.stripe}),
            AsString(EncodeManifest(manifest)));
  batch.Put(StateKey(manifest.stripe), EncodeRecord(record));
  if (state.hit) batch.Put(UseKey(manifest.stripe), EncodeUse(UseOf(state)));
  KV_CO_RETURN_IF_ERROR(co_await metadata_.Write(std::move(batch)));
  const bool dirty = states_.Has(manifest.stripe) && states_.IsDirty(manifest.stripe);
  KV_CO_RETURN_IF_ERROR(states_.Set(manifest.stripe, state));
  if (dirty) states_.SetDirty(manifest.stripe, true);
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
      std::optional<IndexedStripe> stripe = IndexedOf(entry.value, space, run);
      if (stripe) found.push_back(std::move(*stripe));
    }
    if (page.value().size() < kScanLimit) break;
    after = page.value().back().key;
  }
  co_return std::move(found);
}

Task<Result<IndexedStripe>> IndexReplica::ReadFiled(StripeId stripe) {
  const auto name = co_await NameOf(stripe);
  if (!name.ok()) co_return name.status();
  const auto manifest = co_await metadata_.Get(ManifestKey(name.value()));
  if (!manifest.ok()) co_return manifest.status();
  auto filed = IndexedOf(manifest.value(), name.value().space, name.value().run);
  if (!filed || filed->manifest.stripe != stripe) co_return Status(Code::kNotFound);
  co_return std::move(*filed);
}

std::optional<IndexedStripe> IndexReplica::IndexedOf(std::string_view manifest, NamespaceId space,
                                                     RunId run) {
  Result<Manifest> decoded = DecodeManifest(AsBytes(manifest));
  if (!decoded.ok() || decoded.value().space != space || decoded.value().run != run) {
    ++damaged_records_;  // As good as forgotten: another replica has it, or it is a miss.
    return std::nullopt;
  }
  const std::optional<StripeState> state = Find(decoded.value().stripe);
  if (!state) return std::nullopt;
  return IndexedStripe{.manifest = std::move(decoded).value(),
                       .expires_at = state->expires_at,
                       .position = state->position,
                       .keep_until = state->keep_until,
                       .last_access = state->last_access,
                       .hit = state->hit};
}

Task<Status> IndexReplica::Withdraw(StripeName name) {
  states_.Erase(name.stripe);
  MetadataBatch batch;
  batch.Delete(ManifestKey(name));
  batch.Delete(StateKey(name.stripe));
  batch.Delete(UseKey(name.stripe));
  co_return co_await metadata_.Write(std::move(batch));
}

Task<Status> IndexReplica::SaveRemoval(StripeId stripe) {
  MetadataBatch batch;
  batch.Put(RemovalKey(stripe), {});
  KV_CO_RETURN_IF_ERROR(co_await metadata_.Write(std::move(batch)));
  co_return co_await metadata_.Sync();
}

Task<Result<std::vector<StripeId>>> IndexReplica::ListRemovals() {
  std::vector<StripeId> stripes;
  const auto load = [&](const MetadataStore::Entry& entry) {
    if (const auto stripe = StripeOfKey(entry.key)) stripes.push_back(*stripe);
  };
  KV_CO_RETURN_IF_ERROR(co_await ScanAll(workers_, metadata_, std::string(kRemovalPrefix), load));
  co_return std::move(stripes);
}

Task<Status> IndexReplica::ForgetRemovals(std::vector<StripeId> stripes) {
  MetadataBatch batch;
  for (const StripeId& stripe : stripes) batch.Delete(RemovalKey(stripe));
  co_return co_await metadata_.Write(std::move(batch));
}

void IndexReplica::Touch(StripeId stripe, const StripeUse& use) {
  if (!states_.Raise(stripe, use) || states_.IsDirty(stripe)) return;
  states_.SetDirty(stripe, true);
  touched_.push_back(stripe);
}

Task<Status> IndexReplica::SaveUse(StripeId stripe) {
  const std::optional<StripeState> state = Find(stripe);
  if (!state) co_return Status();
  MetadataBatch batch;
  batch.Put(UseKey(stripe), EncodeUse(UseOf(*state)));
  co_return co_await metadata_.Write(std::move(batch));
}

Task<Status> IndexReplica::Flush() {
  while (!touched_.empty()) {
    const size_t count = std::min(touched_.size(), kFlushLimit);
    const std::vector<StripeId> flushed(touched_.end() - static_cast<ptrdiff_t>(count),
                                        touched_.end());
    touched_.resize(touched_.size() - count);
    MetadataBatch batch;
    for (const StripeId& stripe : flushed) {
      const std::optional<StripeState> state = Find(stripe);
      if (!state) continue;  // Withdrawn meanwhile.
      states_.SetDirty(stripe, false);
      batch.Put(UseKey(stripe), EncodeUse(UseOf(*state)));
    }
    if (batch.empty()) continue;
    Status written = co_await metadata_.Write(std::move(batch));
    if (written.ok()) continue;
    for (const StripeId& stripe : flushed) {
      if (!states_.Has(stripe) || states_.IsDirty(stripe)) continue;
      states_.SetDirty(stripe, true);
      touched_.push_back(stripe);
    }
    co_return written;
  }
  touched_.shrink_to_fit();
  co_return Status();
}

Task<Result<StripeName>> IndexReplica::NameOf(StripeId stripe) {
  const auto bytes = co_await metadata_.Get(StateKey(stripe));
  if (!bytes.ok()) co_return bytes.status();
  const Result<StripeRecord> record = DecodeRecord(bytes.value());
  if (!record.ok()) co_return record.status();
  co_return StripeName{record.value().state.space, record.value().run, stripe};
}

Task<Result<IndexReplica::NamePage>> IndexReplica::ListNames(std::optional<StripeId> after,
                                                             size_t limit) {
  const std::string from = after ? StateKey(*after) : std::string();
  const auto entries = co_await metadata_.Scan(std::string(kStatePrefix), from, limit);
  if (!entries.ok()) co_return entries.status();
  NamePage page;
  for (const MetadataStore::Entry& entry : entries.value()) {
    const std::optional<StripeId> stripe = StripeOfKey(entry.key);
    const Result<StripeRecord> record = DecodeRecord(entry.value);
    if (!stripe || !record.ok() || !Has(*stripe)) continue;
    page.names.push_back({record.value().state.space, record.value().run, *stripe});
  }
  if (entries.value().size() == limit) page.next = StripeOfKey(entries.value().back().key);
  co_return page;
}

Task<Status> IndexReplica::SaveSpace(SpaceRecord record) {
  MetadataBatch batch;
  if (record.deleted_at.value == 0) {
    batch.Put(SpaceKey(record.name), EncodeSpace(record));
  } else {
    batch.Put(TombstoneKey(record.id), EncodeSpace(record));
    // The name may belong to another by now.
    const auto living = co_await metadata_.Get(SpaceKey(record.name));
    const bool is_same = living.ok() && DecodeSpace(living.value()).ok() &&
                         DecodeSpace(living.value()).value().id == record.id;
    if (is_same) batch.Delete(SpaceKey(record.name));
  }
  KV_CO_RETURN_IF_ERROR(co_await metadata_.Write(std::move(batch)));
  co_return co_await metadata_.Sync();
}

Task<Result<std::vector<SpaceRecord>>> IndexReplica::ListSpaces() {
  std::vector<SpaceRecord> spaces;
  uint64_t damaged = 0;
  const auto load = [&](const MetadataStore::Entry& entry) {
    Result<SpaceRecord> record = DecodeSpace(entry.value);
    if (record.ok()) {
      spaces.push_back(std::move(record).value());
    } else {
      ++damaged;
    }
  };
  KV_CO_RETURN_IF_ERROR(co_await ScanAll(workers_, metadata_, std::string(kSpacePrefix), load));
  KV_CO_RETURN_IF_ERROR(co_await ScanAll(workers_, metadata_, std::string(kTombstonePrefix), load));
  damaged_records_ += damaged;
  co_return std::move(spaces);
}

Task<Result<IndexReplica::ManifestPage>> IndexReplica::ListManifests(NamespaceId space,
                                                                     std::string after,
                                                                     size_t limit) {
  const std::string prefix = SpaceManifestPrefix(space);
  auto entries = co_await metadata_.Scan(prefix, std::move(after), limit);
  if (!entries.ok()) co_return entries.status();
  ManifestPage page;
  for (const MetadataStore::Entry& entry : entries.value()) {
    Result<Manifest> manifest = DecodeManifest(AsBytes(entry.value));
    if (manifest.ok()) page.manifests.emplace_back(entry.key, std::move(manifest).value());
  }
  if (entries.value().size() == limit) page.next = entries.value().back().key;
  co_return std::move(page);
}

uint64_t IndexReplica::memory_bytes() const {
  return states_.memory_bytes() + touched_.capacity() * sizeof(StripeId);
}

}  // namespace cairn::kv
