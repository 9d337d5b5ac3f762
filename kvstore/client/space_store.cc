// Every target lists all namespaces; what some lack is saved there.
#include "kvstore/client/space_store.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace cairn::kv {

Task<Status> TargetSpaceStore::Load(SpaceRegistry& registry) {
  const std::vector<TargetPort*>& ports = targets_.ports();
  bool answered = ports.empty();
  std::vector<std::set<SpaceRecord>> listed(ports.size());
  for (size_t i = 0; i < ports.size(); ++i) {
    auto records = co_await ports[i]->ListSpaces();
    if (!records.ok()) {
      log_.Warning("namespaces of a target cannot be read: " + records.status().ToString());
      continue;
    }
    answered = true;
    for (const SpaceRecord& record : records.value()) {
      registry.Load(record, clock_.UnixNow());
      listed[i].insert(record);
    }
  }
  if (!answered) co_return Status(Code::kUnavailable, "no target lists its namespaces");
  for (const SpaceRecord& record : registry.All()) {
    for (size_t i = 0; i < ports.size(); ++i) {
      if (listed[i].contains(record)) continue;
      const Status saved = co_await ports[i]->SaveSpace(record);
      if (!saved.ok()) log_.Warning("a namespace is not saved: " + saved.ToString());
    }
  }
  co_return Status();
}

Task<Status> TargetSpaceStore::Save(SpaceRecord record) {
  size_t saved = 0;
  Status failure(Code::kUnavailable, "no target takes the namespace");
  for (TargetPort* port : targets_.ports()) {
    Status outcome = co_await port->SaveSpace(record);
    if (outcome.ok()) {
      ++saved;
    } else {
      failure = std::move(outcome);
    }
  }
  if (saved < std::min<size_t>(2, targets_.ports().size())) co_return failure;
  co_return Status();
}

}  // namespace cairn::kv
