// The namespaces of a store: which there are, which were deleted, and who may attach. Pure.
//
// A name that is deleted and created again gets another id, drawn at random, so that it never
// shows an old block (docs/decisions/0007-namespace-generations.md). A deletion leaves a tombstone:
// a target that was away then cannot bring the namespace back.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kvstore/base/random.h"
#include "kvstore/base/result.h"
#include "kvstore/client/block_store.h"
#include "kvstore/index/index_codec.h"

namespace cairn::kv {

// kInvalid, and what is wrong with the options.
Status CheckOptions(const NamespaceOptions& options);

// kInvalid when token or proof are not what a caller may bring. What may create a namespace brings
// its key, and proves that it made it.
Status CheckToken(const NamespaceOptions& options);
// Of a namespace created with these options; nothing when it is to have no token.
std::optional<StoredKey> TokenKeyOf(const NamespaceOptions& options);
// Whether token or proof are of who knows the token; without a key, whether there are none.
bool TokenFits(const std::optional<StoredKey>& key, const NamespaceOptions& options);

// Not thread-safe. `random` must outlive it.
class SpaceRegistry {
 public:
  explicit SpaceRegistry(Random& random) : random_(random) {}

  // A record that some target lists. A tombstone wins over all else; of two namespaces that live
  // under one name the later created one wins, and the other is out of reach from then on.
  void Load(const SpaceRecord& record, UnixMillis now);
  // All records, tombstones as well: what every target should have.
  std::vector<SpaceRecord> All() const;

  // Null when it is not there, or deleted. Holds until the next change.
  const SpaceRecord* Find(NamespaceId space) const;
  const SpaceRecord* FindName(std::string_view name) const;
  bool IsDeleted(NamespaceId space) const { return buried_.contains(space); }
  bool any_deleted() const { return !buried_.empty(); }
  // Why Find gives nothing: kNotFound for a deleted namespace, else kInvalid.
  Status WhyNot(NamespaceId space) const;
  // Living ones, by name.
  std::vector<const SpaceRecord*> List() const;

  // Ok when a caller with these options may use the namespace. kConflict otherwise: with a wrong
  // token the message says nothing else of it.
  static Status CheckAttach(const SpaceRecord& known, const NamespaceOptions& options);
  // Adds a new namespace with an id of its own. The name is free: FindName says null.
  SpaceRecord Create(const NamespaceOptions& options, UnixMillis now);
  // Makes a living namespace a tombstone, and returns that.
  SpaceRecord Bury(NamespaceId space, UnixMillis now);
  // Undoes Create: another process was faster.
  void Forget(const SpaceRecord& record);
  // Undoes Bury when nobody could record it.
  void Revive(const SpaceRecord& record);

 private:
  Random& random_;
  std::map<NamespaceId, SpaceRecord> living_;
  std::map<std::string, NamespaceId, std::less<>> names_;  // Of the living.
  std::map<NamespaceId, SpaceRecord> buried_;
};

}  // namespace cairn::kv
