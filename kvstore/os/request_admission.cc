// Two budgets, one inside the other, taken in the same order by everybody.
#include "kvstore/os/request_admission.h"

namespace cairn::kv {
namespace {

constexpr uint64_t kControlBytesMax = 16 * kMessageBodySizeMax;  // Of one source's, and of all.
constexpr size_t kSourcesMax = 4096;

}  // namespace

RequestAdmission::Budgets::Budgets(Loop& loop, uint64_t data_bytes_max)
    : of_role{Budget(loop, kControlBytesMax), Budget(loop, data_bytes_max)} {}

RequestAdmission::RequestAdmission(Loop& loop, Limits limits)
    : loop_(loop), limits_(limits), all_(loop, limits.bytes_max) {}

bool RequestAdmission::Knows(NodeId source) {
  if (!sources_.contains(source) && sources_.size() >= kSourcesMax) return false;
  std::unique_ptr<Budgets>& known = sources_[source];
  if (known == nullptr) known = std::make_unique<Budgets>(loop_, limits_.source_bytes_max);
  return true;
}

Task<RequestAdmission::Permits> RequestAdmission::Admit(NodeId source, ConnectionRole role,
                                                        uint64_t bytes) {
  const auto at = static_cast<size_t>(role);
  Budget& of_source = sources_.at(source)->of_role[at];
  Budget& of_all = all_.of_role[at];
  Permits permits;
  permits.source_requests = co_await of_source.requests.Acquire(1);
  permits.source_bytes = co_await of_source.bytes.Acquire(bytes);
  permits.requests = co_await of_all.requests.Acquire(1);
  permits.bytes = co_await of_all.bytes.Acquire(bytes);
  co_return permits;
}

}  // namespace cairn::kv
