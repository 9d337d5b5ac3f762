// Puts: what is there already is left alone, what is on its way is waited for, the rest is written.
#include <algorithm>
#include <utility>

#include "kvstore/client/striped_store.h"
#include "kvstore/client/whole_stripes.h"

namespace cairn::kv {

// Shared by the call that stores the block and those that wait for it.
struct StripedStore::Putting {
  explicit Putting(Loop& loop) : done(loop) {}
  Event done;
  Status outcome;
};

struct StripedStore::PutState {
  ChainPut put;
  SpaceRecord space;
  uint32_t keep_until = 0;                       // Seconds; 0: no promise.
  std::vector<Status> outcomes;                  // Of each block.
  std::vector<std::shared_ptr<Putting>> ours;    // Not null: this call stores the block.
  std::vector<std::shared_ptr<Putting>> others;  // Not null: another call (or block) does.

  size_t ChainAt(size_t at) const { return put.first + at; }
};

Task<std::vector<Status>> StripedStore::Put(ChainPut put) {
  const size_t count = put.blocks.size();
  stats().puts += count;
  const SpaceRecord* space = FindSpace(put.space);
  const Status checked = CheckPut(put, space);
  if (!checked.ok()) {
    stats().puts_failed += count;
    co_return std::vector<Status>(count, checked);
  }
  uint64_t bytes = 0;
  for (const BlockWrite& block : put.blocks) bytes += SizeOf(block);
  put_bytes_in_flight_ += bytes;
  const uint32_t keep_until = KeepSeconds(put.keep_until);
  PutState state{.put = std::move(put),
                 .space = *space,
                 .keep_until = keep_until,
                 .outcomes = std::vector<Status>(count),
                 .ours = std::vector<std::shared_ptr<Putting>>(count),
                 .others = std::vector<std::shared_ptr<Putting>>(count)};
  for (size_t begin = 0; begin < count;) {
    const size_t run_end =
        (state.ChainAt(begin) / state.space.run_blocks + 1) * state.space.run_blocks;
    const size_t end = std::min(count, run_end - state.put.first);
    co_await Classify(state, begin, end);
    begin = end;
  }
  co_await WriteMissing(state);
  for (size_t i = 0; i < count; ++i) {
    if (state.others[i] == nullptr) continue;
    Event& done = state.others[i]->done;
    co_await done;
    state.outcomes[i] = state.others[i]->outcome;
  }
  co_await KeepFound(state);
  co_await MakeDurable(state);
  put_bytes_in_flight_ -= bytes;
  for (const Status& outcome : state.outcomes) {
    if (!outcome.ok() && outcome.code() != Code::kNotFound) ++stats().puts_failed;
  }
  co_return std::move(state.outcomes);
}

Status StripedStore::CheckPut(const ChainPut& put, const SpaceRecord* space) const {
  if (space == nullptr) return spaces().WhyNot(put.space);
  KV_RETURN_IF_ERROR(CheckKeep(put.keep_until));
  if (put.chain.size() < put.blocks.size() || put.first > put.chain.size() - put.blocks.size()) {
    return Status(Code::kInvalid, "the chain does not reach to the last block");
  }
  if (put.ttl_seconds && *put.ttl_seconds < 1) {
    return Status(Code::kInvalid, "a TTL is at least one second");
  }
  uint64_t bytes = 0;
  for (size_t i = 0; i < put.blocks.size(); ++i) {
    const BlockWrite& block = put.blocks[i];
    if (block.id != put.chain[put.first + i]) {
      return Status(Code::kInvalid, "the blocks are not the chain's, in order");
    }
    const uint64_t size = SizeOf(block);
    if (size < 1 || size > kBlockSizeMax || block.gather.size() > kScatterMax) {
      return Status(Code::kInvalid, "a block has 1 byte to 64 MiB, in at most 2,048 segments");
    }
    bytes += size;
  }
  if (put_bytes_in_flight_ > 0 && put_bytes_in_flight_ + bytes > options_.put_bytes_in_flight_max) {
    return Status(Code::kOverloaded, "too many bytes are being put");
  }
  return Status();
}

// Blocks [begin, end) are of one run.
Task<void> StripedStore::Classify(PutState& state, size_t begin, size_t end) {
  const RunKey key = RunOf(state.space, state.put.chain, state.ChainAt(begin));
  std::vector<BlockId> wanted;
  for (size_t i = begin; i < end; ++i) wanted.push_back(state.put.blocks[i].id);
  auto run = co_await parts_.index.Load(key, wanted);
  std::set<StripeId> whole;
  if (run.ok()) {
    whole = co_await FindWhole(judge(), parts_.targets, run.value(), key.space, wanted);
  }
  if (!whole.empty()) run = co_await parts_.index.Load(key, wanted);  // Some may have gone.
  if (!run.ok()) {
    for (size_t i = begin; i < end; ++i) state.outcomes[i] = run.status();
    co_return;
  }
  // From here to the end of the loop nothing is awaited: the view stays true.
  for (size_t i = begin; i < end; ++i) {
    const BlockId id = state.put.blocks[i].id;
    const RunJudge::Answer answer = judge().Find(*run.value(), key.space, id);
    // The first writer won; but what has lost a shard is stored anew, as redundant as it should be.
    if (answer.place != nullptr && whole.contains(answer.place->stripe->manifest.stripe)) {
      parts_.index.Touch(*answer.place->stripe);  // Whoever puts it would have used it.
      continue;
    }
    std::shared_ptr<Putting>& putting = putting_[{key.space, id}];
    if (putting != nullptr) {
      state.others[i] = putting;
      continue;
    }
    putting = std::make_shared<Putting>(parts_.loop);
    state.ours[i] = putting;
  }
}

// What a durable put found stored may have been put as merely cached.
Task<void> StripedStore::MakeDurable(PutState& state) {
  const auto is_found = [&](size_t i) {
    return state.ours[i] == nullptr && state.outcomes[i].ok();
  };
  if (state.put.ack != Ack::kDurable) co_return;
  PortsById concerned;
  for (size_t i = 0; i < state.outcomes.size(); ++i) {
    if (!is_found(i)) continue;
    const RunKey key = RunOf(state.space, state.put.chain, state.ChainAt(i));
    const std::vector<BlockId> wanted{state.put.blocks[i].id};
    const auto run = co_await parts_.index.Load(key, wanted);
    const RunJudge::Answer answer =
        run.ok() ? judge().Find(*run.value(), key.space, wanted[0]) : RunJudge::Answer{};
    if (answer.place != nullptr) AddConcerned(answer.place->stripe->manifest, concerned);
  }
  std::vector<Task<Status>> syncs;
  for (const auto& [id, port] : concerned) syncs.push_back(port->Sync());
  size_t failed = 0;
  Status failure;
  for (Task<Status>& sync : syncs) {
    Status outcome = co_await sync;
    if (outcome.ok()) continue;
    ++failed;
    failure = std::move(outcome);
  }
  if (failed <= state.space.parity_shards) co_return;
  for (size_t i = 0; i < state.outcomes.size(); ++i) {
    if (is_found(i)) state.outcomes[i] = failure;
  }
}

Task<void> StripedStore::WriteMissing(PutState& state) {
  const uint64_t payload_max =
      std::min(writer_.PayloadMax(state.space.data_shards, state.space.parity_shards),
               PreferredPayload(options_.shard_size_max, state.space.data_shards));
  std::vector<std::vector<size_t>> groups;  // One stripe each; of one run, in order.
  uint64_t payload = 0;
  size_t run = SIZE_MAX;
  for (size_t i = 0; i < state.ours.size(); ++i) {
    if (state.ours[i] == nullptr) continue;
    const uint64_t size = SizeOf(state.put.blocks[i]);
    const size_t run_of_block = state.ChainAt(i) / state.space.run_blocks;
    const uint64_t grown = AlignUp(payload, kSectorSize) + size;
    const bool fits = !groups.empty() && run_of_block == run && grown <= payload_max &&
                      groups.back().size() < kStripeBlocksMax;
    if (!fits) groups.emplace_back();
    payload = fits ? grown : size;
    run = run_of_block;
    groups.back().push_back(i);
  }
  std::vector<Task<Status>> writes;
  for (const std::vector<size_t>& group : groups) writes.push_back(WriteGroup(state, group));
  for (size_t i = 0; i < groups.size(); ++i) {
    Task<Status>& write = writes[i];
    const Status outcome = co_await write;
    // Another node was first: they are there, perhaps not as durable or kept as this call wants.
    const bool found = outcome.code() == Code::kConflict;
    for (const size_t at : groups[i]) {
      Finish(state, at, found ? Status() : outcome);
      if (found) state.ours[at] = nullptr;
    }
  }
}

Task<Status> StripedStore::WriteGroup(PutState& state, const std::vector<size_t>& group) {
  StripeOrder order{.space = state.space.id,
                    .run = RunOf(state.space, state.put.chain, state.ChainAt(group[0])).run,
                    .position = static_cast<uint32_t>(state.ChainAt(group[0])),
                    .data_shards = state.space.data_shards,
                    .parity_shards = state.space.parity_shards,
                    .retention = RetentionOf(state),
                    .keep_until = state.keep_until,
                    .ack = state.put.ack,
                    .blocks = {}};
  uint64_t bytes = 0;
  for (const size_t at : group) {
    order.blocks.push_back(state.put.blocks[at]);
    bytes += SizeOf(state.put.blocks[at]);
  }
  const uint64_t payload_max =
      writer_.PayloadMax(state.space.data_shards, state.space.parity_shards);
  if (bytes > payload_max && group.size() == 1) {
    co_return Status(Code::kNoSpace, "a block of " + std::to_string(bytes) +
                                         " bytes is larger than the store's segments allow (" +
                                         std::to_string(payload_max) + ")");
  }
  // What is promised to be kept is let in whatever the policy.
  if (state.put.keep_until == UnixMillis{} && !IsAdmitted(order, bytes)) {
    stats().puts_declined += group.size();
    co_return Status(Code::kNotFound, "not admitted by the store's policy");
  }
  Status outcome = co_await WriteWithin(state.space, std::move(order));
  if (outcome.ok()) {
    stats().bytes_put += bytes;
    stats().puts_stored += group.size();
  }
  co_return outcome;
}

// Within the namespace's quota, and what it may promise to keep.
Task<Status> StripedStore::WriteWithin(SpaceRecord space, StripeOrder order) {
  uint64_t payload = 0;
  for (const BlockWrite& block : order.blocks) payload += AlignUp(SizeOf(block), kSectorSize);
  const KeepLimits limits = LimitsOf(space);
  SpaceLedger& ledger = parts_.home.ledger();
  const bool keeps = order.keep_until > 0;
  // The promise first: what cannot be kept evicts nothing.
  if (keeps) KV_CO_RETURN_IF_ERROR(ledger.Keep(space.id, payload, limits, NowSeconds()));
  Status outcome = co_await sweeper().TakeRoom(space.id, space.quota_bytes, payload);
  if (outcome.ok()) {
    outcome = co_await writer_.Write(std::move(order));
    sweeper().GiveBack(space.id, payload);
  }
  if (keeps) ledger.Unkeep(space.id, payload, limits);
  co_return outcome;
}

bool StripedStore::IsAdmitted(const StripeOrder& order, uint64_t bytes) {
  const uint64_t width =
      std::max<uint8_t>(1, WidthOf(bytes, order.data_shards, options_.shard_size_max));
  const uint64_t raw = bytes / width * (width + order.parity_shards);
  return admission_.Admit(order.space, order.blocks.front().id, raw, parts_.clock.Now());
}

void StripedStore::Finish(PutState& state, size_t at, const Status& outcome) {
  state.outcomes[at] = outcome;
  state.ours[at]->outcome = outcome;
  state.ours[at]->done.Set();
  putting_.erase({state.space.id, state.put.blocks[at].id});
}

Retention StripedStore::RetentionOf(const PutState& state) const {
  const uint32_t ttl = state.put.ttl_seconds.value_or(state.space.ttl_seconds);
  const int64_t expires_at = parts_.clock.UnixNow().value + int64_t{ttl} * 1000;
  return {.kind = state.put.retention.value_or(state.space.retention),
          .ttl_seconds = ttl,
          .expires_at = {std::max(expires_at, int64_t{state.keep_until} * 1000)}};
}

// What this call did not store itself is promised to be kept like the rest.
Task<void> StripedStore::KeepFound(PutState& state) {
  if (state.keep_until == 0) co_return;
  std::vector<size_t> found;
  std::vector<size_t> places;
  for (size_t i = 0; i < state.outcomes.size(); ++i) {
    if (state.ours[i] != nullptr || !state.outcomes[i].ok()) continue;
    found.push_back(i);
    places.push_back(state.ChainAt(i));
  }
  if (found.empty()) co_return;
  const std::vector<Status> kept =
      co_await TouchBlocks(state.space, state.put.chain, std::move(places), state.keep_until);
  for (size_t i = 0; i < found.size(); ++i) state.outcomes[found[i]] = kept[i];
}

}  // namespace cairn::kv
