// One target of this node as its own client sees it: the segment log, and the index replica.
#pragma once

#include <memory>
#include <string>

#include "kvstore/client/target_port.h"
#include "kvstore/io/clock.h"

namespace cairn::kv {

// A device, or what stands for one, and the metadata that belongs to it.
struct TargetMedium {
  std::unique_ptr<Disk> disk;
  std::unique_ptr<MetadataStore> metadata;
  std::string label;  // For people: "target-03".
};

// Loop thread only.
class LocalTarget final : public TargetPort {
 public:
  // `clock` must outlive it. The log and the replica stand on the medium.
  LocalTarget(Clock& clock, TargetMedium medium, std::unique_ptr<SegmentLog> log,
              std::unique_ptr<IndexReplica> index);
  ~LocalTarget() override;

  TargetId id() const override { return log_->id(); }
  uint64_t free_bytes() const override;
  uint32_t operations_in_flight() const override { return in_flight_; }

  Task<Status> Append(const Manifest& manifest, ShardIndex index, ShardPayload payload) override;
  Task<Status> Read(SegmentLog::Range range) override;
  Task<Status> ReadVerified(StripeId stripe, ShardIndex index, MutableByteSpan into) override;
  bool MayHold(StripeId stripe, ShardIndex index) const override;
  Task<Status> Holds(StripeId stripe, ShardIndex index) override;
  Task<Status> Drop(StripeId stripe) override;
  Task<Status> Sync() override;

  Task<Status> Publish(IndexedStripe stripe, Durability durability) override;
  Task<Result<std::vector<IndexedStripe>>> LookUp(NamespaceId space, RunId run) override;
  Task<Result<IndexedStripe>> ReadFiled(StripeId stripe) override;
  Task<Status> Withdraw(StripeName name) override;
  Task<Status> SaveRemoval(StripeId stripe) override;
  bool MayHaveFiled(StripeId stripe) const override { return index_->Has(stripe); }
  void Touch(StripeId stripe, const StripeUse& use) override;
  Task<Status> SaveUse(StripeId stripe) override;
  std::optional<StripeState> StateOf(StripeId stripe) const override {
    return index_->Find(stripe);
  }
  Task<Result<StripeName>> NameOf(StripeId stripe) override;
  Task<Result<std::vector<Filed>>> ListFiled(std::optional<StripeId> after, size_t limit) override;
  Task<Status> SaveSpace(SpaceRecord record) override;
  Task<Result<std::vector<SpaceRecord>>> ListSpaces() override;

  // Writes what hits changed, and makes all that was written so far survive a power cut.
  Task<Status> Checkpoint();

  SegmentLog& log() { return *log_; }
  const SegmentLog& log() const { return *log_; }
  IndexReplica& index() { return *index_; }
  const IndexReplica& index() const { return *index_; }
  const std::string& label() const { return medium_.label; }
  uint64_t memory_bytes() const;

 private:
  uint32_t NowSeconds() const;

  Clock& clock_;
  TargetMedium medium_;
  std::unique_ptr<SegmentLog> log_;
  std::unique_ptr<IndexReplica> index_;
  uint32_t in_flight_ = 0;
  bool changed_ = true;  // Since the last Checkpoint. At first: by the process before.
};

}  // namespace cairn::kv
