// A target of another node, as a client of the cluster sees it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "kvstore/async/event.h"
#include "kvstore/async/gate.h"
#include "kvstore/client/target_port.h"
#include "kvstore/peer/call_batch.h"
#include "kvstore/peer/peer_caller.h"

namespace cairn::kv {

struct PeerTargetOptions {
  // A call that has no answer after so long fails with kDeadline.
  Nanos read_timeout = Seconds(1);
  Nanos write_timeout = Seconds(5);
  // Touches leave, and a node that was silent is asked for its free space, this often.
  Nanos flush_every = Seconds(1);
};

// Hits waiting to be sent: beyond it the oldest stripes' are forgotten.
inline constexpr size_t kTouchesMax = 65'536;

// Errors beside those of TargetPort: kUnavailable, kDeadline and kOverloaded of the Network. After
// them the target may or may not have done what was asked. kConflict of writes to the index: the
// group has another home now, and nothing was done. All may be asked again:
// - Append: a second append of the same stripe and index writes nothing.
// - Publish: the same manifest takes the place of itself; what is known of its use stays.
// - Withdraw, Drop: what is not there is gone already. Stripe ids are never used again.
// - Touch, SaveUse: each field of a StripeUse only ever grows.
// - SaveRemoval: once is as good as twice.
// - SaveSpace: the record takes the place of the one with its name or id.
// Reads change nothing, and are repeated once over a new connection when the first one broke.
//
// Hints answer what promises least: MayHold and MayHaveFiled true, StateOf nothing.
class PeerTarget final : public TargetPort {
 public:
  // `caller` must outlive it. Stop() must be awaited before the destructor.
  PeerTarget(Loop& loop, PeerCaller& caller, NodeId node, TargetId id, PeerTargetOptions options);
  ~PeerTarget() override;

  TargetId id() const override { return id_; }
  NodeId node() const { return node_; }
  // As the last answer said; 0 before the first.
  uint64_t free_bytes() const override { return seen_.free_bytes; }
  uint32_t operations_in_flight() const override;

  Task<Status> Append(const Manifest& manifest, ShardIndex index, ShardPayload payload) override;
  Task<Status> Read(SegmentLog::Range range) override;
  Task<Status> ReadVerified(StripeId stripe, ShardIndex index, MutableByteSpan into) override;
  bool MayHold(StripeId, ShardIndex) const override { return true; }
  Task<Status> Holds(StripeId stripe, ShardIndex index) override {
    return questions_.Add({stripe, index});
  }
  Task<Status> Drop(StripeId stripe) override { return drops_.Add(stripe); }
  Task<Status> Sync() override;

  Task<Status> Publish(IndexedStripe stripe, Durability durability) override;
  Task<Result<std::vector<IndexedStripe>>> LookUp(NamespaceId space, RunId run) override;
  Task<Result<IndexedStripe>> ReadFiled(StripeId stripe) override;
  Task<Status> Withdraw(StripeName name) override { return withdrawals_.Add(name); }
  Task<Status> SaveRemoval(StripeId stripe) override;
  bool MayHaveFiled(StripeId) const override { return true; }
  // Leaves within `flush_every`.
  void Touch(StripeId stripe, const StripeUse& use) override;
  Task<Status> SaveUse(StripeId stripe) override;
  std::optional<StripeState> StateOf(StripeId) const override { return std::nullopt; }
  Task<Result<StripeName>> NameOf(StripeId stripe) override;
  Task<Result<std::vector<Filed>>> ListFiled(std::optional<StripeId> after, size_t limit) override;
  Task<Status> SaveSpace(SpaceRecord record) override;
  Task<Result<std::vector<SpaceRecord>>> ListSpaces() override;

  // Sends what Touch collected; what could not be sent is kept.
  Task<Status> Flush();
  // Flushes, and waits for what it does in the background. No call may be in flight or follow.
  Task<void> Stop();
  // Hits that were forgotten because too many waited.
  uint64_t touches_dropped() const { return touches_dropped_; }

 private:
  using Repeat = PeerCaller::Repeat;
  template <typename Message>
  Result<PeerCaller::Order> OrderOf(peer::Verb verb, const Message& message) const;
  // Of the version that all nodes speak.
  Result<PeerCaller::Order> OrderAppend(const Manifest& manifest, ShardIndex index,
                                        uint64_t checksum) const;
  Task<Result<PeerCaller::Answer>> Ask(PeerCaller::Order order);
  // For verbs that only succeed.
  template <typename Message>
  Task<Status> Do(peer::Verb verb, Message message);
  template <typename Value, typename Message>
  Task<Result<Value>> Fetch(peer::Verb verb, Message message);
  // The answer's payload must fill `order.into`.
  Task<Status> ReadInto(PeerCaller::Order order);
  template <typename Message>
  Task<std::vector<Status>> DoMany(peer::Verb verb, Message message, size_t count);
  Task<std::vector<Status>> SendQuestions(std::vector<peer::ShardName> shards);
  Task<std::vector<Status>> SendDrops(std::vector<StripeId> stripes);
  Task<std::vector<Status>> SendWithdrawals(std::vector<StripeName> names);
  Task<void> FlushNowAndThen();

  PeerCaller& caller_;
  const NodeId node_;
  const TargetId id_;
  const PeerTargetOptions options_;

  peer::AnswerHead seen_;
  Instant seen_at_;
  uint32_t in_flight_ = 0;
  std::map<StripeId, StripeUse> touched_;
  uint64_t touches_dropped_ = 0;
  CallBatch<peer::ShardName> questions_;  // Whether it holds them.
  CallBatch<StripeId> drops_;
  CallBatch<StripeName> withdrawals_;
  Event stopping_;
  Gate gate_;
};

}  // namespace cairn::kv
