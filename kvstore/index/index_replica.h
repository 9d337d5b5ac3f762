// One target's replica of the index: runs -> manifests, with the expiry and recency of each stripe.
//
// Manifests lie in the target's MetadataStore; in memory there is one StripeState per stripe.
// Loop thread only. Several calls may be in flight.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kvstore/async/task.h"
#include "kvstore/base/log.h"
#include "kvstore/index/index_codec.h"
#include "kvstore/metadata/metadata_store.h"

namespace cairn::kv {

// A manifest with what only the index knows of it.
struct IndexedStripe {
  Manifest manifest;
  UnixMillis expires_at;  // As of the latest refresh.
  uint32_t position = 0;
};

enum class Durability : uint8_t { kProcess, kPowerCut };

class IndexReplica {
 public:
  // Reads the states of all stripes. Damaged records are skipped and counted.
  // `metadata` and `log` must outlive the result.
  static Task<Result<std::unique_ptr<IndexReplica>>> Open(MetadataStore& metadata, Log& log);

  // Files the manifest under its run. Publishing the same stripe again is fine.
  Task<Status> Publish(IndexedStripe stripe, uint32_t now_seconds, Durability durability);

  // Everything filed under the run, expired or not: one range read.
  Task<Result<std::vector<IndexedStripe>>> LookUp(NamespaceId space, RunId run);

  // Removes the stripe. Fine when it is not there.
  Task<Status> Withdraw(StripeName name);

  // A hit: changes memory now, and the metadata with the next Flush.
  void Touch(StripeId stripe, uint32_t now_seconds, UnixMillis expires_at);
  // Writes the states that Touch changed.
  Task<Status> Flush();

  Task<Status> SaveSpace(SpaceRecord record);
  Task<Result<std::vector<SpaceRecord>>> ListSpaces();

  // Nothing when the stripe is not filed here.
  const StripeState* Find(StripeId stripe) const;
  const std::map<StripeId, StripeState>& stripes() const { return stripes_; }
  bool has_touched() const { return !touched_.empty(); }
  uint64_t damaged_records() const { return damaged_records_; }
  uint64_t memory_bytes() const;

 private:
  explicit IndexReplica(MetadataStore& metadata) : metadata_(metadata) {}

  MetadataStore& metadata_;
  std::map<StripeId, StripeState> stripes_;
  std::set<StripeId> touched_;  // Changed since the last Flush.
  uint64_t damaged_records_ = 0;
};

}  // namespace cairn::kv
