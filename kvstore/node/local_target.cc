// Passes calls on to the segment log and the index replica, counting what is in flight.
#include "kvstore/node/local_target.h"

#include <utility>

namespace cairn::kv {
namespace {

class Counted {
 public:
  explicit Counted(uint32_t& count) : count_(count) { ++count_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() { --count_; }

 private:
  uint32_t& count_;
};

}  // namespace

LocalTarget::LocalTarget(Clock& clock, TargetMedium medium, std::unique_ptr<SegmentLog> log,
                         std::unique_ptr<IndexReplica> index)
    : clock_(clock), medium_(std::move(medium)), log_(std::move(log)), index_(std::move(index)) {}

LocalTarget::~LocalTarget() { KV_CHECK(in_flight_ == 0); }

uint64_t LocalTarget::free_bytes() const { return log_->stats().free_bytes; }

Task<Status> LocalTarget::Append(const Manifest& manifest, ShardIndex index,
                                 ShardPayload payload) {
  const Counted counted(in_flight_);
  changed_ = true;
  co_return co_await log_->Append(manifest, index, payload);
}

Task<Status> LocalTarget::Read(SegmentLog::Range range) {
  const Counted counted(in_flight_);
  co_return co_await log_->Read(range);
}

Task<Status> LocalTarget::ReadVerified(StripeId stripe, ShardIndex index, MutableByteSpan into) {
  const Counted counted(in_flight_);
  co_return co_await log_->ReadVerified(stripe, index, into);
}

bool LocalTarget::MayHold(StripeId stripe, ShardIndex index) const {
  return log_->Find(stripe) == index;
}

Task<Status> LocalTarget::Holds(StripeId stripe, ShardIndex index) {
  co_return Status(MayHold(stripe, index) ? Code::kOk : Code::kNotFound);
}

Task<Status> LocalTarget::Drop(StripeId stripe) {
  if (!log_->Find(stripe)) co_return Status();
  const Counted counted(in_flight_);
  changed_ = true;
  co_return co_await log_->Drop(stripe);
}

Task<Status> LocalTarget::Sync() {
  const Counted counted(in_flight_);
  co_return co_await log_->Sync();
}

Task<Status> LocalTarget::Publish(IndexedStripe stripe, Durability durability) {
  const Counted counted(in_flight_);
  changed_ = true;
  co_return co_await index_->Publish(std::move(stripe), NowSeconds(), durability);
}

Task<Result<std::vector<IndexedStripe>>> LocalTarget::LookUp(NamespaceId space, RunId run) {
  const Counted counted(in_flight_);
  co_return co_await index_->LookUp(space, run);
}

Task<Result<IndexedStripe>> LocalTarget::ReadFiled(StripeId stripe) {
  const Counted counted(in_flight_);
  co_return co_await index_->ReadFiled(stripe);
}

Task<Status> LocalTarget::Withdraw(StripeName name) {
  const Counted counted(in_flight_);
  changed_ = true;
  co_return co_await index_->Withdraw(name);
}

Task<Status> LocalTarget::SaveRemoval(StripeId stripe) {
  const Counted counted(in_flight_);
  co_return co_await index_->SaveRemoval(stripe);
}

void LocalTarget::Touch(StripeId stripe, const StripeUse& use) { index_->Touch(stripe, use); }

Task<Status> LocalTarget::SaveUse(StripeId stripe) {
  const Counted counted(in_flight_);
  changed_ = true;
  co_return co_await index_->SaveUse(stripe);
}

Task<Result<StripeName>> LocalTarget::NameOf(StripeId stripe) {
  const Counted counted(in_flight_);
  co_return co_await index_->NameOf(stripe);
}

Task<Result<std::vector<TargetPort::Filed>>> LocalTarget::ListFiled(std::optional<StripeId> after,
                                                                    size_t limit) {
  std::vector<Filed> filed;
  const auto take = [&](StripeId stripe, const StripeState& state) {
    if (filed.size() >= limit) return false;
    filed.push_back({stripe, state});
    return true;
  };
  index_->states().ForEachAfter(after, take);
  co_return std::move(filed);
}

Task<Status> LocalTarget::SaveSpace(SpaceRecord record) {
  const Counted counted(in_flight_);
  co_return co_await index_->SaveSpace(std::move(record));
}

Task<Result<std::vector<SpaceRecord>>> LocalTarget::ListSpaces() {
  const Counted counted(in_flight_);
  co_return co_await index_->ListSpaces();
}

Task<Status> LocalTarget::Checkpoint() {
  const Counted counted(in_flight_);
  if (index_->has_touched()) changed_ = true;
  if (!changed_) co_return Status();
  changed_ = false;
  Status outcome = co_await index_->Flush();
  if (outcome.ok()) outcome = co_await log_->Sync();
  if (!outcome.ok()) changed_ = true;
  co_return outcome;
}

uint64_t LocalTarget::memory_bytes() const {
  return log_->stats().memory_bytes + index_->memory_bytes() + medium_.metadata->memory_bytes();
}

uint32_t LocalTarget::NowSeconds() const {
  return static_cast<uint32_t>(clock_.UnixNow().value / 1000);
}

}  // namespace cairn::kv
