// A union of replicas, to be sure of a miss.
#include "kvstore/client/run_reader.h"

#include <algorithm>
#include <utility>

#include "kvstore/types/limits.h"

namespace cairn::kv {

Task<Result<KnownRun>> RunReader::Read(RunKey key, std::span<const BlockId> wanted, Ask ask) {
  const std::vector<TargetId> order = ask == Ask::kPlaces ? placement_.Places(key.space, key.run)
                                                          : placement_.Sources(key.space, key.run);
  const bool all = ask == Ask::kAll || ask == Ask::kPlaces;
  const size_t ask_max = ask == Ask::kReplicas ? std::min<size_t>(kIndexReplicas, order.size())
                                               : order.size();
  KnownRun run;
  size_t next = ask == Ask::kOthers ? 1 : 0;
  size_t answered = 0;
  Status failure(Code::kUnavailable, "no target answers for the index");
  while (next < ask_max && (all || !(answered > 0 && judge_.AllUsable(run, wanted)))) {
    // One first; when that does not settle it, all others at once.
    const size_t until = next == 0 && !all ? 1 : ask_max;
    std::vector<std::pair<TargetId, Task<Result<std::vector<IndexedStripe>>>>> calls;
    for (; next < until; ++next) {
      TargetPort* port = targets_.Find(order[next]);
      if (port != nullptr) calls.emplace_back(port->id(), port->LookUp(key.space, key.run));
    }
    for (auto& [id, call] : calls) {
      auto stripes = co_await call;
      targets_.Note(id, stripes.status());
      if (!stripes.ok()) {
        failure = stripes.status();
        continue;
      }
      ++answered;
      for (IndexedStripe& stripe : stripes.value()) run.Add(std::move(stripe));
    }
  }
  if (answered == 0) co_return failure;
  // Published means: two replicas have it. So all but one must have been asked to be sure.
  // So many as can have it alone may be away, and no more.
  const bool enough = order.size() + 1 >= placement_.Places(key.space, key.run).size();
  run.answered_by_all = answered == order.size() && enough;
  run.complete = next >= ask_max && answered + 1 >= ask_max && (answered >= 2 || ask_max < 2);
  co_return std::move(run);
}

}  // namespace cairn::kv
