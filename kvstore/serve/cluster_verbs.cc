// The verbs of ClusterAdmin: parse, ask the member, encode.
#include <utility>

#include "kvstore/serve/request_handler.h"

namespace cairn::kv {

using wire::Verb;

namespace {

using Body = std::vector<uint8_t>;

Body Answer(const Status& status) {
  if (status.ok()) return wire::EncodeAnswer(Result<wire::Empty>(wire::Empty{}));
  return wire::EncodeAnswer(Result<wire::Empty>(status));
}

}  // namespace

Task<std::optional<Body>> RequestHandler::PerformCluster(Session&, Request& request) {
  const ByteSpan body = request.body;
  const Verb verb = request.header.verb;
  const bool sound = wire::ParseAny(verb, wire::Direction::kRequest, body).ok();
  if (!sound) co_return std::nullopt;
  if (parts_.cluster == nullptr) {
    co_return Answer(Status(Code::kInvalid, "this store is not part of a cluster: it stands alone "
                                            "([cluster] enabled = false)"));
  }
  ClusterAdmin& cluster = *parts_.cluster;
  Status outcome;
  switch (verb) {
    case Verb::kDescribeCluster:
      co_return wire::EncodeAnswer(co_await cluster.DescribeCluster());
    case Verb::kDrainNode: {
      auto parsed = wire::Parse<wire::DrainNodeRequest>(body);
      wire::DrainNodeRequest& drain = parsed.value();
      outcome = co_await cluster.DrainNode(std::move(drain.node), drain.wanted);
      break;
    }
    case Verb::kDrainTarget: {
      auto parsed = wire::Parse<wire::DrainTargetRequest>(body);
      wire::DrainTargetRequest& drain = parsed.value();
      outcome = co_await cluster.DrainTarget(drain.target, drain.wanted);
      break;
    }
    default:
      co_return std::nullopt;
  }
  co_return Answer(outcome);
}

}  // namespace cairn::kv
