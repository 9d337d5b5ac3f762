// Parses, checks who is the home, asks the index, answers.
#include "kvstore/home/home_service.h"

#include <algorithm>

#include "kvstore/home/tenure_table.h"

namespace cairn::kv {

using home::Empty;
using home::Verb;

namespace {

// Of a manifest, without its blocks: more than it ever takes.
constexpr uint64_t kManifestSizeOverhead = 4096;

Result<Empty> OnlyStatus(Status status) {
  if (!status.ok()) return status;
  return Empty{};
}

}  // namespace

Task<Bytes> HomeService::Answer(NodeId source, Bytes request) {
  const Result<home::RequestHead> head = home::ParseHead(request.span());
  if (!head.ok()) {
    const Result<Empty> refused(head.status());
    co_return home::EncodeAnswer(parts_.map.epoch(), refused);
  }
  if (head.value().epoch > parts_.map.epoch()) parts_.map.NoteEpoch(head.value().epoch);
  co_return co_await Dispatch(source, head.value().verb, std::move(request));
}

namespace {

// Runs `verb` on the request as a Message, and encodes what it returns.
template <typename Message, typename Serve>
auto Served(const HomeMap& map, Bytes request, Serve serve)
    -> Task<Bytes> {
  Result<Message> parsed = home::ParseRequest<Message>(request.span());
  if (!parsed.ok()) {
    const Result<Empty> refused(parsed.status());
    co_return home::EncodeAnswer(map.epoch(), refused);
  }
  auto serving = serve(std::move(parsed).value());
  const auto answer = co_await serving;
  co_return home::EncodeAnswer(map.epoch(), answer);
}

}  // namespace

Task<Bytes> HomeService::Dispatch(NodeId source, Verb verb, Bytes request) {
  using namespace home;  // NOLINT: the messages.
  const HomeMap& map = parts_.map;
  Bytes& body = request;
  switch (verb) {
    case Verb::kLoad:
      return Served<LoadRequest>(map, std::move(body),
                                 [this](LoadRequest one) { return Load(std::move(one)); });
    case Verb::kPublish:
    case Verb::kRepublish:
      return Served<FileRequest>(map, std::move(body), [this, verb](FileRequest one) {
        return File(std::move(one), verb);
      });
    case Verb::kRemove:
      return Served<RemoveRequest>(map, std::move(body),
                                   [this](RemoveRequest one) { return Remove(one); });
    case Verb::kKeep:
      return Served<KeepRequest>(map, std::move(body),
                                 [this](KeepRequest one) { return Keep(one); });
    case Verb::kUse:
      return Served<UseRequest>(map, std::move(body),
                                [this](UseRequest one) { return Use(std::move(one)); });
    case Verb::kStates:
      return Served<StatesRequest>(map, std::move(body),
                                   [this](StatesRequest one) { return States(std::move(one)); });
    case Verb::kName:
      return Served<NameRequest>(map, std::move(body),
                                 [this](NameRequest one) { return Name(one); });
    case Verb::kGrant:
      return Served<GrantRequest>(map, std::move(body), [this, source](GrantRequest one) {
        return Grant(source, std::move(one));
      });
    case Verb::kRenew:
      return Served<RenewRequest>(map, std::move(body), [this, source](RenewRequest one) {
        return Renew(source, std::move(one));
      });
    case Verb::kRelease:
      return Served<ReleaseRequest>(map, std::move(body), [this, source](ReleaseRequest one) {
        return Release(source, std::move(one));
      });
    case Verb::kEndSession:
      return Served<EndSessionRequest>(map, std::move(body), [this, source](EndSessionRequest one) {
        return EndSession(source, one);
      });
  }
  KV_CHECK(false);
}

Status HomeService::CheckHome(uint16_t group_hash) const {
  if (parts_.map.HomeOf(group_hash) == parts_.map.self()) return Status();
  return Status(Code::kUnavailable, "not the home of the run, by the map of epoch " +
                                     std::to_string(parts_.map.epoch()));
}

Task<Result<home::LoadAnswer>> HomeService::Load(home::LoadRequest request) {
  const RunKey key = request.key;
  KV_CO_RETURN_IF_ERROR(CheckHome(GroupHashOf(key.space, key.run)));
  auto loading = [&] {
    switch (request.extent) {
      case home::Extent::kFiled: return parts_.index.LoadFiled(key);
      case home::Extent::kAll: return parts_.index.LoadAll(key);
      case home::Extent::kWanted: return parts_.index.Load(key, request.wanted);
    }
    KV_CHECK(false);
  }();
  auto loaded = co_await loading;
  if (!loaded.ok()) co_return loaded.status();
  const KnownRun& run = *loaded.value();
  home::LoadAnswer answer{.complete = run.complete, .answered_by_all = run.answered_by_all};
  uint64_t size = 0;
  for (const KnownStripePtr& stripe : run.stripes()) {
    size += kManifestSizeOverhead + stripe->manifest.blocks.size() * sizeof(ManifestBlock);
    if (size > home::kAnswerSizeMax) {
      answer.complete = answer.answered_by_all = false;
      break;
    }
    IndexedStripe& filed = answer.stripes.emplace_back();
    filed.manifest = stripe->manifest;
    filed.expires_at = stripe->expires_at;
    filed.position = stripe->position;
  }
  for (const BlockId& id : request.wanted) {
    answer.reasons.push_back(parts_.index.judge().Find(run, key.space, id).reason);
  }
  co_return std::move(answer);
}

Task<Result<Empty>> HomeService::File(home::FileRequest request, Verb verb) {
  const Manifest& manifest = request.stripe.manifest;
  KV_CO_RETURN_IF_ERROR(CheckHome(GroupHashOf(manifest.space, manifest.run)));
  if (GroupHashOf(manifest.stripe) != GroupHashOf(manifest.space, manifest.run)) {
    co_return Status(Code::kInvalid, "the stripe's id is not of its run's group");
  }
  if (verb == Verb::kRepublish) {
    co_return OnlyStatus(co_await parts_.index.Republish(std::move(request.stripe)));
  }
  co_return OnlyStatus(
      co_await parts_.index.PublishFirst(std::move(request.stripe), request.durability));
}

Task<Result<Empty>> HomeService::Remove(home::RemoveRequest request) {
  KV_CO_RETURN_IF_ERROR(CheckHome(GroupHashOf(request.name.stripe)));
  co_return OnlyStatus(co_await parts_.index.Remove(request.name, request.reason));
}

Task<Result<Empty>> HomeService::Keep(home::KeepRequest request) {
  KV_CO_RETURN_IF_ERROR(CheckHome(GroupHashOf(request.name.stripe)));
  const RunKey key{request.name.space, request.name.run};
  const auto run = co_await parts_.index.LoadAll(key);
  if (!run.ok()) co_return run.status();
  for (const KnownStripePtr& stripe : run.value()->stripes()) {
    if (stripe->manifest.stripe != request.name.stripe) continue;
    co_return OnlyStatus(
        co_await parts_.index.Keep(stripe, request.keep_until, request.limits));
  }
  co_return Status(Code::kNotFound);
}

Task<Result<Empty>> HomeService::Use(home::UseRequest request) {
  for (const home::UseRequest::Hit& hit : request.hits) {
    if (CheckHome(GroupHashOf(hit.name.stripe)).ok()) parts_.index.NoteUse(hit.name, hit.use);
  }
  for (const StripeId& stripe : request.lacking) {
    if (CheckHome(GroupHashOf(stripe)).ok()) parts_.index.NoteLacking(stripe);
  }
  co_return Empty{};
}

Task<Result<home::StatesAnswer>> HomeService::States(home::StatesRequest request) {
  const std::vector<StripeId> stripes = request.stripes;
  home::StatesAnswer answer;
  answer.reports = co_await parts_.index.StatesOf(std::move(request.stripes));
  // Of runs that others are the home of nothing is known here.
  for (size_t i = 0; i < stripes.size(); ++i) {
    if (!CheckHome(GroupHashOf(stripes[i])).ok()) answer.reports[i] = {};
  }
  co_return std::move(answer);
}

Task<Result<home::NameAnswer>> HomeService::Name(home::NameRequest request) {
  KV_CO_RETURN_IF_ERROR(CheckHome(GroupHashOf(request.stripe)));
  const auto name = co_await parts_.index.NameOf(request.stripe);
  if (!name.ok()) co_return name.status();
  home::NameAnswer answer{.name = name.value()};
  co_return std::move(answer);
}

// --- Leases: each asker's sessions are sessions here ---

SessionId HomeService::SessionOf(NodeId source, uint64_t session) {
  const auto known = sessions_.find({source, session});
  if (known != sessions_.end()) return known->second;
  return sessions_.emplace(AskerSession{source, session}, parts_.index.OpenSession()).first->second;
}

Task<Result<home::GrantAnswer>> HomeService::Grant(NodeId source, home::GrantRequest request) {
  const bool bounded =
      request.duration.value > 0 && request.duration <= Seconds(kLeaseSecondsMax);
  if (!bounded) co_return Status(Code::kInvalid, "a lease lasts at most kLeaseSecondsMax");
  for (const LeaseTable::Stripe& stripe : request.stripes) {
    KV_CO_RETURN_IF_ERROR(CheckHome(GroupHashOf(stripe.id)));
  }
  const LeaseOrder order{.session = SessionOf(source, request.session),
                         .duration = std::min(request.duration, kHomeLeaseMax)};
  home::GrantAnswer answer;
  answer.grant = co_await parts_.index.Grant(std::move(request.stripes), order);
  co_return std::move(answer);
}

Task<Result<home::RenewAnswer>> HomeService::Renew(NodeId source, home::RenewRequest request) {
  const LeaseOrder order{.session = SessionOf(source, request.session),
                         .duration = std::min(request.duration, kHomeLeaseMax)};
  home::RenewAnswer answer;
  const std::vector<Status> renewed =
      co_await parts_.index.Renew(std::move(request.leases), order);
  for (const Status& one : renewed) answer.codes.push_back(one.code());
  co_return std::move(answer);
}

Task<Result<Empty>> HomeService::Release(NodeId source, home::ReleaseRequest request) {
  const SessionId session = SessionOf(source, request.session);
  co_return OnlyStatus(co_await parts_.index.Release(std::move(request.leases), session));
}

Task<Result<Empty>> HomeService::EndSession(NodeId source, home::EndSessionRequest request) {
  const auto known = sessions_.find({source, request.session});
  if (known == sessions_.end()) co_return Empty{};
  parts_.index.EndSession(known->second);
  sessions_.erase(known);
  co_return Empty{};
}

void HomeService::ForgetNode(NodeId node) {
  for (auto at = sessions_.lower_bound({node, 0}); at != sessions_.end() && at->first.first == node;
       at = sessions_.erase(at)) {
    parts_.index.EndSession(at->second);
  }
}

}  // namespace cairn::kv
