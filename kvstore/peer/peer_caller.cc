// The head is made anew for a repeated request: less of its budget is left.
#include "kvstore/peer/peer_caller.h"

#include <utility>

namespace cairn::kv {

Task<Result<PeerCaller::Answer>> PeerCaller::Ask(Order order) {
  Result<Network::Answer> answer = co_await Send(order);
  if (answer.status().code() == Code::kUnavailable && order.repeat == Repeat::kOnce &&
      clock_.Now() < order.deadline) {
    answer = co_await Send(order);
  }
  if (!answer.ok()) co_return answer.status();
  Answer taken;
  taken.body = std::move(answer.value().body);
  taken.payload_size = answer.value().payload_size;
  KV_CO_ASSIGN_OR_RETURN(const auto parsed,
                         peer::ParseAnswerHead(std::as_const(taken.body).span()));
  taken.head = parsed.first;
  taken.fields_at = taken.body.size() - parsed.second.size();
  if (taken.head.epoch > map_.epoch()) map_.OnNewer(order.node, taken.head.epoch);
  co_return std::move(taken);
}

Task<Result<Network::Answer>> PeerCaller::Send(const Order& order) {
  const peer::RequestHead head{.verb = order.verb,
                               .epoch = map_.epoch(),
                               .budget_nanos = (order.deadline - clock_.Now()).value,
                               .target = order.target};
  Network::Outgoing request(peer::EncodeRequest(head, order.message), order.payload);
  return network_.Call(order.node, std::move(request), order.into, order.deadline);
}

Task<Result<std::vector<uint8_t>>> PeerCaller::FetchMap(NodeId node, Instant deadline) {
  Order order{.node = node, .target = {}, .verb = peer::Verb::kGetMap};
  order.deadline = deadline;
  order.repeat = Repeat::kOnce;
  Result<Answer> answer = co_await Ask(std::move(order));
  if (!answer.ok()) co_return answer.status();
  Result<peer::EncodedMap> map = peer::ParseAnswer<peer::EncodedMap>(answer.value().fields());
  if (!map.ok()) co_return map.status();
  co_return std::move(map.value().bytes);
}

}  // namespace cairn::kv
