// One key for each wish.
#include "kvstore/control/member_admin.h"

#include <utility>

namespace cairn::kv {
namespace {

Task<Status> SetKey(ControlStore& store, std::string key, Draining wanted, Instant deadline) {
  Change change;
  change.kind = wanted == Draining::kYes ? Change::Kind::kPut : Change::Kind::kDelete;
  change.key = std::move(key);
  Transaction transaction;
  transaction.changes.push_back(std::move(change));
  auto outcome = co_await store.Commit(std::move(transaction), deadline);
  co_return outcome.ok() ? Status() : outcome.status();
}

}  // namespace

Task<Status> SetDraining(ControlStore& store, ControlKeys keys, NodeId node, Draining wanted,
                         Instant deadline) {
  return SetKey(store, keys.DrainNodes() + ControlKeys::Hex(node.value), wanted, deadline);
}

Task<Status> SetDraining(ControlStore& store, ControlKeys keys, TargetId target, Draining wanted,
                         Instant deadline) {
  return SetKey(store, keys.DrainTargets() + ControlKeys::Hex(target.value), wanted, deadline);
}

}  // namespace cairn::kv
