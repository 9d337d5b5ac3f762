// Keeps a session: connects, restores what the last one had, and tries again.
#include "kvstore/remote/remote_core.h"

#include <unistd.h>

#include <algorithm>

#include "kvstore/client/space_registry.h"
#include "kvstore/os/entropy.h"

namespace cairn::kv {

using wire::Verb;

namespace {

// Puts a proof in place of the token.
void HideToken(NamespaceOptions& options, const TokenNonce& server) {
  const SpaceToken known{.name = options.name, .token = options.token};
  TokenNonces nonces{.server = server};
  FillFromKernel(nonces.client);
  options.proof = ProveToken(known, nonces);
  if (options.create) options.proof->new_key = StoredKeyOf(known);
  options.token.clear();
}

}  // namespace

RemoteStore::Core::Core(RemoteParts parts, RemoteOptions options)
    : parts_(parts),
      options_(std::move(options)),
      proving_(parts.poller.loop(), 1),
      stopping_(parts.poller.loop()),
      idle_(parts.poller.loop()),
      background_(parts.poller.loop()) {}

RemoteStore::Core::~Core() { KV_CHECK(calls_ == 0 && background_.count() == 0); }

Task<Status> RemoteStore::Core::Start() {
  if (options_.data_lanes < 1 || options_.data_lanes > 16) {
    co_return Status(Code::kInvalid, "a client has 1 to 16 data lanes");
  }
  Result<SessionPtr> opened = co_await RemoteSession::Open(parts_, options_, stats);
  if (!opened.ok()) co_return opened.status();
  background_.Hold(Maintain(opened.value()));
  co_return Status();
}

Task<void> RemoteStore::Core::Stop() {
  stopping_.Set();
  why_not_ = "the client has stopped";
  if (session_ != nullptr) session_->Break("the client stops");
  co_await background_.Close();
  session_.reset();
  if (calls_ > 0) co_await idle_;
}

Result<RemoteStore::Core::SessionPtr> RemoteStore::Core::session() const {
  if (session_ != nullptr && !session_->broken()) return session_;
  return Status(Code::kUnavailable, std::string("not connected to ")
                                        .append(options_.address)
                                        .append(": ")
                                        .append(why_not_));
}

Task<void> RemoteStore::Core::Maintain(SessionPtr session) {
  while (session != nullptr) {
    ++stats.connects;
    Task<void> running = session->Run();
    co_await Restore(session);
    session_ = session;
    if (stopping_.is_set()) session->Break("the client stops");
    co_await running;
    session_ = nullptr;
    ++stats.disconnects;
    regions_.ForgetRegistrations();
    if (stopping_.is_set()) co_return;
    why_not_ = session->why_broken();
    parts_.log.Warning(why_not_);
    session = co_await Reconnect();
  }
}

// Null when the client stops.
Task<RemoteStore::Core::SessionPtr> RemoteStore::Core::Reconnect() {
  Nanos delay = options_.reconnect_delay_min;
  while (true) {
    // Up to a half more, so that many clients do not come in step.
    const Instant now = parts_.clock.Now();
    const Nanos spread{now.nanos % std::max<int64_t>(1, delay.value / 2)};
    co_await parts_.clock.SleepUntil(now + delay + spread, &stopping_);
    if (stopping_.is_set()) co_return nullptr;
    Result<SessionPtr> opened = co_await RemoteSession::Open(parts_, options_, stats);
    if (opened.ok()) {
      parts_.log.Info(std::string("connected again to ").append(options_.address));
      co_return opened.value();
    }
    why_not_ = opened.status().message();
    delay = std::min(options_.reconnect_delay_max, Nanos{delay.value * 2});
  }
}

Task<void> RemoteStore::Core::Restore(SessionPtr session) {
  const std::map<std::string, NamespaceOptions> attached = attached_;
  for (const auto& [name, options] : attached) {
    NamespaceOptions again = options;
    again.create = false;
    const Result<NamespaceId> space = co_await AttachOn(session, std::move(again));
    if (space.ok() || space.code() == Code::kUnavailable) continue;
    parts_.log.Warning(std::string("no longer attached to namespace ")
                           .append(name)
                           .append(": ")
                           .append(space.status().ToString()));
    attached_.erase(name);
  }
  if (!session->shares_memory()) co_return;
  for (ClientRegions::Region* region : regions_.all()) {
    const Status registered = co_await Register(session, *region);
    // Without it the bytes of this region travel through the socket.
    if (!registered.ok()) parts_.log.Warning(registered.ToString());
  }
}

Task<Result<NamespaceId>> RemoteStore::Core::Attach(NamespaceOptions options) {
  const Calling calling(*this);
  const Result<SessionPtr> current = session();
  if (!current.ok()) co_return current.status();
  NamespaceOptions kept = options;
  Result<NamespaceId> space = co_await AttachOn(current.value(), std::move(options));
  if (space.ok()) {
    std::string name = kept.name;
    attached_.insert_or_assign(std::move(name), std::move(kept));
  }
  co_return space;
}

Task<Result<NamespaceId>> RemoteStore::Core::CreateSpace(NamespaceOptions options) {
  const Calling calling(*this);
  const Result<SessionPtr> current = session();
  if (!current.ok()) co_return current.status();
  const Instant deadline = CallDeadline();
  if (!options.token.empty()) {
    const auto there = co_await AttachToOld(current.value(), options, deadline);
    if (there.ok()) {
      co_return Status(Code::kConflict, "namespace \"" + options.name + "\" exists already");
    }
    if (there.code() != Code::kNotFound) co_return there;
  }
  options.create = true;
  co_return co_await AskForSpace(current.value(), Verb::kCreateSpace, std::move(options),
                                 deadline);
}

Task<Result<NamespaceId>> RemoteStore::Core::AttachOn(SessionPtr session,
                                                      NamespaceOptions options) {
  const Instant deadline = CallDeadline();
  if (options.create && !options.token.empty()) {
    const auto there = co_await AttachToOld(session, options, deadline);
    if (there.code() != Code::kNotFound) co_return there;
  }
  co_return co_await AskForSpace(session, Verb::kAttach, std::move(options), deadline);
}

Task<Result<NamespaceId>> RemoteStore::Core::AttachToOld(SessionPtr session,
                                                         NamespaceOptions options,
                                                         Instant deadline) {
  options.create = false;
  return AskForSpace(std::move(session), Verb::kAttach, std::move(options), deadline);
}

Task<Result<NamespaceId>> RemoteStore::Core::AskForSpace(SessionPtr session, Verb verb,
                                                         NamespaceOptions options,
                                                         Instant deadline) {
  KV_CO_RETURN_IF_ERROR(CheckToken(options));
  Semaphore::Permit turn;
  if (!options.token.empty()) {
    turn = co_await proving_.Acquire(1);
    RemoteSession::Order ask{.verb = Verb::kChallenge, .deadline = deadline};
    const Result<wire::Challenge> challenge =
        co_await session->Ask<wire::Challenge>(std::move(ask));
    if (!challenge.ok()) co_return challenge.status();
    HideToken(options, challenge.value().nonce);
  }
  Result<std::vector<uint8_t>> body = wire::Encode(options);
  if (!body.ok()) co_return body.status();
  RemoteSession::Order order{.verb = verb,
                             .body = std::move(body).value(),
                             .deadline = deadline};
  co_return co_await session->Ask<NamespaceId>(std::move(order));
}

// --- Regions ------------------------------------------------------------------------------------

Task<Status> RemoteStore::Core::Register(SessionPtr session, ClientRegions::Region& region) {
  const uint64_t size = region.memory->file_size();
  const wire::RegisterRequest request{.region = region.number, .size = size};
  RemoteSession::Order order{.verb = Verb::kRegister,
                             .body = wire::Encode(request).value(),
                             .descriptor = region.memory->fd(),
                             .deadline = CallDeadline()};
  const Result<wire::Empty> answer = co_await session->Ask<wire::Empty>(std::move(order));
  if (answer.ok()) region.registered_size = size;
  co_return answer.status();
}

Task<Result<MutableByteSpan>> RemoteStore::Core::NewRegion(uint64_t size) {
  const Calling calling(*this);
  const Result<SessionPtr> current = session();
  if (!current.ok()) co_return current.status();
  Result<ClientRegions::Region*> added = regions_.Add(size);
  if (!added.ok()) co_return added.status();
  ClientRegions::Region& region = *added.value();
  if (current.value()->shares_memory()) {
    const Status registered = co_await Register(current.value(), region);
    if (!registered.ok()) {
      regions_.Remove(region.number);
      co_return registered;
    }
  }
  co_return region.memory->span();
}

Task<Status> RemoteStore::Core::FreeRegion(MutableByteSpan memory) {
  const Calling calling(*this);
  const ClientRegions::Region* region = regions_.Find(memory);
  if (region == nullptr) co_return Status(Code::kInvalid, "no region is exactly this memory");
  const uint32_t number = region->number;
  const Result<SessionPtr> current = session();
  if (current.ok() && region->registered_size > 0) {
    const SessionPtr kept = current.value();
    const wire::UnregisterRequest request{.region = number};
    RemoteSession::Order order{.verb = Verb::kUnregister,
                               .body = wire::Encode(request).value(),
                               .deadline = CallDeadline()};
    // When it fails the session is gone, and the registration with it.
    (void)co_await kept->Ask<wire::Empty>(std::move(order));
  }
  regions_.Remove(number);
  co_return Status();
}

}  // namespace cairn::kv
