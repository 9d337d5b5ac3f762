// The verbs whose answer is a body alone: parse, ask the store, encode.
#include <string>
#include <utility>

#include "kvstore/os/entropy.h"
#include "kvstore/serve/request_handler.h"

namespace cairn::kv {

using wire::Verb;

namespace {

using Body = std::vector<uint8_t>;

// Namespaces that one session may be attached to.
constexpr size_t kAttachedMax = 4096;
const char* const kAttachFirst = "attach to the namespace first";

template <typename Value>
Body Answer(const Result<Value>& value) {
  return wire::EncodeAnswer(value);
}
Body Answer(const Status& status) {
  if (status.ok()) return wire::EncodeAnswer(Result<wire::Empty>(wire::Empty{}));
  return wire::EncodeAnswer(Result<wire::Empty>(status));
}
Body AnswerAll(std::vector<Status> statuses) {
  return wire::EncodeAnswer(Result<std::vector<Status>>(std::move(statuses)));
}

}  // namespace

Task<std::optional<Body>> RequestHandler::Perform(Connection& connection, Request& request) {
  Session& session = *connection.session;
  const Verb verb = request.header.verb;
  if (wire::IsAdmin(verb)) {
    const bool may = session.may_administer && parts_.admin != nullptr;
    const bool of_cluster = verb >= Verb::kDescribeCluster;
    if (of_cluster && session.may_administer) return PerformCluster(session, request);
    if (may && verb == Verb::kCreateSpace) return PerformOnSpace(connection, request);
    if (may && !of_cluster) return PerformAdmin(request);
  } else if (verb == Verb::kAttach) {
    return PerformOnSpace(connection, request);
  } else if (verb > Verb::kAttach) {  // Those below are of the session itself.
    return PerformStore(session, request);
  }
  return PerformSession(connection, request);
}

Task<std::optional<Body>> RequestHandler::PerformSession(Connection& connection,
                                                         Request& request) {
  switch (request.header.verb) {
    case Verb::kPing:
      if (!request.body.empty()) co_return std::nullopt;
      co_return Answer(Status());
    case Verb::kChallenge: {
      if (!request.body.empty()) co_return std::nullopt;
      wire::Challenge challenge;
      FillFromKernel(challenge.nonce);
      connection.challenge = challenge.nonce;
      co_return Answer(Result<wire::Challenge>(challenge));
    }
    case Verb::kRegister:
      co_return Register(connection, request);
    case Verb::kUnregister: {
      const auto parsed = wire::Parse<wire::UnregisterRequest>(request.body);
      if (!parsed.ok()) co_return std::nullopt;
      co_return Answer(connection.session->regions.Unregister(parsed.value().region));
    }
    default:
      co_return Answer(Status(Code::kInvalid,
                              "only administrators may: use the unix socket, or the admin token"));
  }
}

std::optional<Body> RequestHandler::Register(Connection& connection, const Request& request) {
  const auto parsed = wire::Parse<wire::RegisterRequest>(request.body);
  if (!parsed.ok()) return std::nullopt;
  const int descriptor = connection.lane.TakeDescriptor();
  if (!connection.is_unix) {
    return Answer(Status(Code::kInvalid, "memory is shared over a unix socket only"));
  }
  return Answer(connection.session->regions.Register(parsed.value(), descriptor));
}

Task<std::optional<Body>> RequestHandler::PerformOnSpace(Connection& connection,
                                                         Request& request) {
  auto parsed = wire::Parse<NamespaceOptions>(request.body);
  if (!parsed.ok()) co_return std::nullopt;
  NamespaceOptions options = std::move(parsed).value();
  if (options.proof.has_value()) {
    // Used up, whatever comes of it.
    const std::optional<TokenNonce> nonce = std::exchange(connection.challenge, std::nullopt);
    if (!nonce.has_value()) {
      co_return Answer(Status(Code::kInvalid, "each proof of a token takes a challenge before it"));
    }
    options.proof->nonces.server = *nonce;
  }
  if (request.header.verb == Verb::kAttach) {
    co_return co_await Attach(*connection.session, std::move(options));
  }
  co_return Answer(co_await parts_.admin->CreateSpace(std::move(options)));
}

Task<std::optional<Body>> RequestHandler::Attach(Session& session, NamespaceOptions options) {
  if (session.attached.size() >= kAttachedMax) {
    co_return Answer(Status(Code::kOverloaded, "attached to too many namespaces"));
  }
  const Result<NamespaceId> space = co_await parts_.store.Attach(std::move(options));
  if (space.ok()) session.attached.insert(space.value());
  co_return Answer(space);
}

Task<std::optional<Body>> RequestHandler::PerformStore(Session& session, Request& request) {
  const ByteSpan body = request.body;
  switch (request.header.verb) {
    case Verb::kRenew: {
      auto parsed = wire::Parse<wire::RenewRequest>(body);
      if (!parsed.ok()) co_return std::nullopt;
      wire::RenewRequest& renew = parsed.value();
      const LeaseOrder order{.session = session.id, .duration = renew.lease};
      co_return AnswerAll(co_await parts_.store.Renew(std::move(renew.leases), order));
    }
    case Verb::kRelease: {
      auto parsed = wire::Parse<wire::ReleaseRequest>(body);
      if (!parsed.ok()) co_return std::nullopt;
      const Status released =
          co_await parts_.store.Release(std::move(parsed.value().leases), session.id);
      co_return Answer(released);
    }
    case Verb::kPut:
      co_return co_await Put(session, request, std::move(*request.put));
    default:
      co_return co_await PerformOnChain(session, request);
  }
}

Task<std::optional<Body>> RequestHandler::PerformOnChain(Session& session, Request& request) {
  const ByteSpan body = request.body;
  switch (request.header.verb) {
    case Verb::kLookup: {
      auto parsed = wire::Parse<wire::LookupRequest>(body);
      if (!parsed.ok()) co_return std::nullopt;
      wire::LookupRequest& lookup = parsed.value();
      if (!session.attached.contains(lookup.space)) break;
      const LeaseOrder order{.session = session.id, .duration = lookup.lease};
      co_return Answer(co_await parts_.store.Lookup(lookup.space, std::move(lookup.chain), order));
    }
    case Verb::kLookupEach: {
      auto parsed = wire::Parse<wire::LookupEachRequest>(body);
      if (!parsed.ok()) co_return std::nullopt;
      wire::LookupEachRequest& lookup = parsed.value();
      if (!session.attached.contains(lookup.space)) break;
      const LeaseOrder order{.session = session.id, .duration = lookup.lease};
      co_return Answer(co_await parts_.store.LookupEach(lookup.space, std::move(lookup.chain),
                                                        lookup.first, order));
    }
    case Verb::kTouch: {
      auto parsed = wire::Parse<wire::TouchRequest>(body);
      if (!parsed.ok()) co_return std::nullopt;
      wire::TouchRequest& touch = parsed.value();
      if (!session.attached.contains(touch.space)) break;
      co_return AnswerAll(co_await parts_.store.Touch(touch.space, std::move(touch.chain),
                                                      touch.first, touch.keep_until));
    }
    case Verb::kDelete: {
      auto parsed = wire::Parse<wire::DeleteRequest>(body);
      if (!parsed.ok()) co_return std::nullopt;
      wire::DeleteRequest& request_body = parsed.value();
      if (!session.attached.contains(request_body.space)) break;
      const Status deleted = co_await parts_.store.Delete(
          request_body.space, std::move(request_body.chain), request_body.first);
      co_return Answer(deleted);
    }
    default:
      co_return std::nullopt;
  }
  co_return Answer(Status(Code::kInvalid, kAttachFirst));
}

Task<std::optional<Body>> RequestHandler::Put(Session& session, Request& request,
                                              wire::PutRequest put) {
  if (!session.attached.contains(put.space)) {
    co_return Answer(Status(Code::kInvalid, kAttachFirst));
  }
  RegionTable::Pins pins;
  ChainPut order{.space = put.space,
                 .chain = std::move(put.chain),
                 .first = put.first,
                 .ack = put.ack,
                 .ttl_seconds = put.ttl_seconds,
                 .retention = put.retention,
                 .keep_until = put.keep_until};
  uint64_t at = 0;
  for (const wire::PutRequest::Block& block : put.blocks) {
    BlockWrite& write = order.blocks.emplace_back(BlockWrite{.id = block.id});
    write.checksum = block.checksum;
    if (put.as_payload) {
      write.bytes = request.payload.span().subspan(at, block.size);
      at += AlignUp(block.size, kSectorSize);
      stats_.inline_bytes_written += block.size;
      continue;
    }
    auto spans = session.regions.Resolve(block.segments, pins);
    if (!spans.ok()) co_return Answer(spans.status());
    if (spans.value().size() == 1) {
      write.bytes = spans.value()[0];
    } else {
      write.gather.assign(spans.value().begin(), spans.value().end());
    }
    stats_.shared_bytes_written += block.size;
  }
  std::vector<Status> outcomes = co_await parts_.store.Put(std::move(order));
  co_return AnswerAll(std::move(outcomes));
}

Task<std::optional<Body>> RequestHandler::PerformAdmin(Request& request) {
  StoreAdmin& admin = *parts_.admin;
  const ByteSpan body = request.body;
  switch (request.header.verb) {
    case Verb::kDeleteSpace: {
      auto parsed = wire::Parse<wire::NameRequest>(body);
      if (!parsed.ok()) co_return std::nullopt;
      const Status deleted = co_await admin.DeleteSpace(std::move(parsed.value().name));
      co_return Answer(deleted);
    }
    case Verb::kListBlocks: {
      auto parsed = wire::Parse<wire::ListBlocksRequest>(body);
      if (!parsed.ok()) co_return std::nullopt;
      wire::ListBlocksRequest& list = parsed.value();
      co_return Answer(
          co_await admin.ListBlocks(list.space, std::move(list.cursor), list.limit));
    }
    case Verb::kInspect: {
      auto parsed = wire::Parse<wire::InspectRequest>(body);
      if (!parsed.ok()) co_return std::nullopt;
      wire::InspectRequest& inspect = parsed.value();
      co_return Answer(co_await admin.Inspect(inspect.space, std::move(inspect.chain), inspect.at,
                                              inspect.verify));
    }
    case Verb::kStartScrub:
    case Verb::kStartRepair: {
      const auto parsed = wire::Parse<wire::RateRequest>(body);
      if (!parsed.ok()) co_return std::nullopt;
      const uint64_t rate = parsed.value().bytes_per_second;
      Status started;
      if (request.header.verb == Verb::kStartScrub) {
        started = co_await admin.StartScrub(rate);
      } else {
        started = co_await admin.StartRepair(rate);
      }
      co_return Answer(started);
    }
    default:
      if (!body.empty()) co_return std::nullopt;
      co_return co_await PerformPlainAdmin(request.header.verb);
  }
}

Task<std::optional<Body>> RequestHandler::PerformPlainAdmin(Verb verb) {
  StoreAdmin& admin = *parts_.admin;
  Status outcome;
  switch (verb) {
    case Verb::kStats:
      co_return Answer(co_await admin.Stats());
    case Verb::kListTargets:
      co_return Answer(co_await admin.ListTargets());
    case Verb::kListSpaces:
      co_return Answer(co_await admin.ListSpaces());
    case Verb::kScrubStatus:
      co_return Answer(co_await admin.ScrubStatus());
    case Verb::kRepairStatus:
      co_return Answer(co_await admin.RepairStatus());
    case Verb::kStopScrub:
      outcome = co_await admin.StopScrub();
      break;
    case Verb::kStopRepair:
      outcome = co_await admin.StopRepair();
      break;
    default:
      co_return std::nullopt;
  }
  co_return Answer(outcome);
}

}  // namespace cairn::kv
