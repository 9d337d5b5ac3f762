// Another node's target, as a node of the world sees it.
#pragma once

#include <utility>
#include <vector>

#include "tests/unit/kvstore/client/fake_target.h"
#include "tests/unit/kvstore/home/links.h"

namespace cairn::kv {

// Another node's target: each call is a message there and one back, and no hint is known.
class FarTarget final : public TargetPort {
 public:
  struct Parts {
    Links& links;
    const HomeMap& sender;
    const WorldMap& world;  // What the target's node has heard of.
    FakeTarget& target;
  };
  explicit FarTarget(Parts parts) : parts_(parts) {}

  TargetId id() const override { return parts_.target.id(); }
  uint64_t free_bytes() const override { return parts_.target.free_bytes(); }
  uint32_t operations_in_flight() const override { return 0; }

  Task<Status> Append(const Manifest& manifest, ShardIndex index,
                      ShardPayload payload) override {
    KV_CO_RETURN_IF_ERROR(co_await There());
    KV_CO_RETURN_IF_ERROR(co_await parts_.target.Append(manifest, index, payload));
    co_return co_await Back();
  }
  Task<Status> Read(SegmentLog::Range range) override {
    KV_CO_RETURN_IF_ERROR(co_await There());
    KV_CO_RETURN_IF_ERROR(co_await parts_.target.Read(range));
    co_return co_await Back();
  }
  Task<Status> ReadVerified(StripeId stripe, ShardIndex index, MutableByteSpan into) override {
    KV_CO_RETURN_IF_ERROR(co_await There());
    KV_CO_RETURN_IF_ERROR(co_await parts_.target.ReadVerified(stripe, index, into));
    co_return co_await Back();
  }
  bool MayHold(StripeId, ShardIndex) const override { return true; }
  Task<Status> Holds(StripeId stripe, ShardIndex index) override {
    KV_CO_RETURN_IF_ERROR(co_await There());
    const Status held = co_await parts_.target.Holds(stripe, index);
    KV_CO_RETURN_IF_ERROR(co_await Back());
    co_return held;
  }
  Task<Status> Drop(StripeId stripe) override {
    KV_CO_RETURN_IF_ERROR(co_await There());
    KV_CO_RETURN_IF_ERROR(co_await parts_.target.Drop(stripe));
    co_return co_await Back();
  }
  Task<Status> Sync() override {
    KV_CO_RETURN_IF_ERROR(co_await There());
    co_return co_await Back();
  }

  Task<Status> Publish(IndexedStripe stripe, Durability durability) override {
    const uint64_t epoch = parts_.sender.epoch();
    KV_CO_RETURN_IF_ERROR(co_await There());
    KV_CO_RETURN_IF_ERROR(Check(stripe.manifest.stripe, epoch));
    KV_CO_RETURN_IF_ERROR(co_await parts_.target.Publish(std::move(stripe), durability));
    co_return co_await Back();
  }
  Task<Result<std::vector<IndexedStripe>>> LookUp(NamespaceId space, RunId run) override {
    KV_CO_RETURN_IF_ERROR(co_await There());
    auto stripes = co_await parts_.target.LookUp(space, run);
    KV_CO_RETURN_IF_ERROR(co_await Back());
    co_return std::move(stripes);
  }
  Task<Result<IndexedStripe>> ReadFiled(StripeId stripe) override {
    KV_CO_RETURN_IF_ERROR(co_await There());
    auto filed = co_await parts_.target.ReadFiled(stripe);
    KV_CO_RETURN_IF_ERROR(co_await Back());
    co_return std::move(filed);
  }
  Task<Status> Withdraw(StripeName name) override {
    const uint64_t epoch = parts_.sender.epoch();
    KV_CO_RETURN_IF_ERROR(co_await There());
    KV_CO_RETURN_IF_ERROR(Check(name.stripe, epoch));
    KV_CO_RETURN_IF_ERROR(co_await parts_.target.Withdraw(name));
    co_return co_await Back();
  }
  Task<Status> SaveRemoval(StripeId) override { co_return Status(); }
  bool MayHaveFiled(StripeId) const override { return true; }
  void Touch(StripeId, const StripeUse&) override {}
  Task<Status> SaveUse(StripeId) override { co_return Status(); }
  std::optional<StripeState> StateOf(StripeId) const override { return std::nullopt; }
  Task<Result<StripeName>> NameOf(StripeId stripe) override {
    KV_CO_RETURN_IF_ERROR(co_await There());
    auto name = co_await parts_.target.NameOf(stripe);
    KV_CO_RETURN_IF_ERROR(co_await Back());
    co_return name;
  }
  Task<Result<std::vector<Filed>>> ListFiled(std::optional<StripeId>, size_t) override {
    co_return Status(Code::kUnavailable, "not asked of other nodes");
  }
  Task<Status> SaveSpace(SpaceRecord) override { co_return Status(Code::kInvalid); }
  Task<Result<std::vector<SpaceRecord>>> ListSpaces() override {
    co_return Status(Code::kInvalid);
  }

 private:
  Status Check(StripeId stripe, uint64_t epoch) const {
    return CheckWriter(parts_.world.GroupOf(GroupHashOf(stripe)).since, epoch);
  }
  Task<Status> There() { return parts_.links.Travel(parts_.sender.self(), NodeOf(id())); }
  Task<Status> Back() { return parts_.links.Travel(NodeOf(id()), parts_.sender.self()); }

  Parts parts_;
};

}  // namespace cairn::kv
