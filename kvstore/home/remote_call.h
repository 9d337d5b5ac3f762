// How RemoteIndex calls a home: with a deadline, an epoch, and a memory of who did not answer.
#pragma once

#include <utility>

#include "kvstore/home/remote_index.h"

namespace cairn::kv {

template <typename Answer, typename Message>
Task<Result<Answer>> RemoteIndex::Ask(NodeId home, home::Verb verb, Message message) {
  const auto avoided = avoid_until_.find(home);
  const bool is_avoided =
      avoided != avoid_until_.end() && parts_.clock.Now() < avoided->second;
  if (home == NodeId{} || is_avoided) {
    co_return Status(Code::kUnavailable, "the home of the run cannot be reached");
  }
  const home::RequestHead head{.verb = verb, .epoch = parts_.map.epoch()};
  Bytes request = home::EncodeRequest(head, message);
  const Instant deadline = parts_.clock.Now() + options_.call_timeout;
  const auto answer = co_await parts_.peer.Call(home, std::move(request), deadline);
  if (!answer.ok()) {
    avoid_until_[home] = parts_.clock.Now() + options_.avoid_for;
    co_return Status(Code::kUnavailable, "the home of the run: " + answer.status().ToString());
  }
  avoid_until_.erase(home);
  uint64_t epoch = 0;
  Result<Answer> parsed = home::ParseAnswer<Answer>(answer.value().span(), epoch);
  if (epoch > parts_.map.epoch()) parts_.map.NoteEpoch(epoch);
  co_return std::move(parsed);
}

template <typename Answer, typename Message>
Task<Result<Answer>> RemoteIndex::AskHome(uint16_t group_hash, home::Verb verb, Message message) {
  const NodeId home = HomeOf(group_hash);
  Result<Answer> answer = co_await Ask<Answer>(home, verb, message);
  const NodeId now = HomeOf(group_hash);
  if (answer.code() != Code::kUnavailable || now == home || now == parts_.map.self()) {
    co_return std::move(answer);
  }
  co_return co_await Ask<Answer>(now, verb, std::move(message));
}

}  // namespace cairn::kv
