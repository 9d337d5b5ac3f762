// One target's replica of the index: runs -> manifests, with the expiry and recency of each stripe.
//
// Manifests lie in the target's MetadataStore; in memory there is one packed state per stripe.
// Loop thread only. Several calls may be in flight.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kvstore/async/task.h"
#include "kvstore/base/log.h"
#include "kvstore/index/index_codec.h"
#include "kvstore/index/state_table.h"
#include "kvstore/io/workers.h"
#include "kvstore/metadata/metadata_store.h"

namespace cairn::kv {

// A manifest with what only the index knows of it.
struct IndexedStripe {
  Manifest manifest;
  UnixMillis expires_at;    // As of the latest refresh.
  uint32_t position = 0;
  uint32_t keep_until = 0;  // Seconds since 1970; 0: may be evicted at any time.
  uint32_t last_access = 0;  // Seconds since 1970; 0: it is new.
  bool hit = false;          // Used since it was put.
};

enum class Durability : uint8_t { kProcess, kPowerCut };

class IndexReplica {
 public:
  // Reads the states of all stripes. Damaged records are skipped and counted.
  // What is passed in must outlive the result.
  static Task<Result<std::unique_ptr<IndexReplica>>> Open(MetadataStore& metadata,
                                                          Workers& workers, Log& log);

  // Files the manifest under its run, with what is known of its use: a new one counts as used now.
  // Publishing the same stripe again replaces its manifest, and keeps the latest use. kOverloaded
  // when too many namespaces have stripes here.
  Task<Status> Publish(IndexedStripe stripe, uint32_t now_seconds, Durability durability);

  // Everything filed under the run, expired or not: one range read.
  Task<Result<std::vector<IndexedStripe>>> LookUp(NamespaceId space, RunId run);

  // One stripe as it is filed: two reads, however many its run has. kNotFound when it is not here.
  Task<Result<IndexedStripe>> ReadFiled(StripeId stripe);

  // Removes the stripe. Fine when it is not there.
  Task<Status> Withdraw(StripeName name);

  // Notes that the stripe was deleted while some target was away, which has to learn of it when it
  // is back. Survives a power cut. Kept until ForgetRemovals.
  Task<Status> SaveRemoval(StripeId stripe);
  Task<Result<std::vector<StripeId>>> ListRemovals();
  Task<Status> ForgetRemovals(std::vector<StripeId> stripes);

  // A hit: changes memory now, and the metadata with the next Flush. Never lowers anything.
  void Touch(StripeId stripe, const StripeUse& use);
  // Writes what Touch changed of one stripe, now. Fine when it is not filed here.
  Task<Status> SaveUse(StripeId stripe);
  // Writes what Touch changed.
  Task<Status> Flush();
  bool has_touched() const { return !touched_.empty(); }

  // Under which run the stripe is filed: one read. kNotFound when it is not filed here.
  Task<Result<StripeName>> NameOf(StripeId stripe);
  // The names of the stripes filed here, in pieces: at most `limit` behind `after`. The last piece
  // has no `next`.
  struct NamePage {
    std::vector<StripeName> names;
    std::optional<StripeId> next;  // The next piece's `after`.
  };
  Task<Result<NamePage>> ListNames(std::optional<StripeId> after, size_t limit);

  // The manifests of a namespace by run and stripe, in pieces: at most `limit` behind the key
  // `after` ("": the first). The last piece has an empty `next`.
  struct ManifestPage {
    std::vector<std::pair<std::string, Manifest>> manifests;  // By their keys.
    std::string next;
  };
  Task<Result<ManifestPage>> ListManifests(NamespaceId space, std::string after, size_t limit);

  // A namespace, or a tombstone, which takes the place of the namespace. Survives a power cut.
  Task<Status> SaveSpace(SpaceRecord record);
  // Tombstones as well.
  Task<Result<std::vector<SpaceRecord>>> ListSpaces();

  // From memory, by stripe: the table of all that is filed here.
  const StateTable& states() const { return states_; }
  // Nothing when the stripe is not filed here.
  std::optional<StripeState> Find(StripeId stripe) const { return states_.Find(stripe); }
  bool Has(StripeId stripe) const { return states_.Has(stripe); }

  uint64_t damaged_records() const { return damaged_records_; }
  uint64_t memory_bytes() const;

 private:
  IndexReplica(MetadataStore& metadata, Workers& workers)
      : metadata_(metadata), workers_(workers) {}
  // Nothing when the bytes are damaged, or the stripe was withdrawn while they were read.
  std::optional<IndexedStripe> IndexedOf(std::string_view manifest, NamespaceId space, RunId run);
  void LoadRecord(const MetadataStore::Entry& entry);
  void LoadUse(const MetadataStore::Entry& entry);

  MetadataStore& metadata_;
  Workers& workers_;
  StateTable states_;
  std::vector<StripeId> touched_;  // Changed since the last Flush, and marked dirty.
  uint64_t damaged_records_ = 0;
};

}  // namespace cairn::kv
