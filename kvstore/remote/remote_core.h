// What is behind a RemoteStore: the session of the moment, and what must survive it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kvstore/async/event.h"
#include "kvstore/async/gate.h"
#include "kvstore/async/semaphore.h"
#include "kvstore/remote/client_regions.h"
#include "kvstore/remote/remote_session.h"
#include "kvstore/remote/remote_store.h"

namespace cairn::kv {

// Loop thread only.
class RemoteStore::Core {
 public:
  Core(RemoteParts parts, RemoteOptions options);
  ~Core();

  Task<Status> Start();
  Task<void> Stop();

  // Counts a call while it lives: Stop waits for all.
  class Calling {
   public:
    explicit Calling(Core& core) : core_(core) { ++core_.calls_; }
    Calling(const Calling&) = delete;
    Calling& operator=(const Calling&) = delete;
    ~Calling() {
      if (--core_.calls_ == 0 && core_.stopping_.is_set()) core_.idle_.Set();
    }

   private:
    Core& core_;
  };

  using SessionPtr = std::shared_ptr<RemoteSession>;
  // The session, or kUnavailable and why there is none.
  Result<SessionPtr> session() const;
  // `message`, sent as `verb`, and the value that came back.
  template <typename Value, typename Message>
  Task<Result<Value>> Ask(wire::Verb verb, Message message);
  // The same for verbs that give a status for each of `count` things.
  template <typename Message>
  Task<std::vector<Status>> AskAll(wire::Verb verb, size_t count, Message message);
  // For verbs that give a status.
  template <typename Message>
  Task<Status> Tell(wire::Verb verb, Message message);

  Task<Result<NamespaceId>> Attach(NamespaceOptions options);
  Task<Result<NamespaceId>> CreateSpace(NamespaceOptions options);
  Task<std::vector<BlockReadResult>> Get(NamespaceId space, std::vector<BlockId> chain,
                                         std::vector<BlockRead> reads, Instant deadline);
  Task<std::vector<Status>> Put(ChainPut put);
  Task<Result<MutableByteSpan>> NewRegion(uint64_t size);
  Task<Status> FreeRegion(MutableByteSpan memory);

  RemoteStats stats;

 private:
  // Some reads, or some blocks to put, that go in one request.
  struct Group;

  Instant CallDeadline() const { return parts_.clock.Now() + options_.call_timeout; }
  Task<void> Maintain(SessionPtr session);
  Task<SessionPtr> Reconnect();
  Task<Result<NamespaceId>> AttachOn(SessionPtr session, NamespaceOptions options);
  // Creates nothing. Asked first where there is a token: the key of a new namespace is worth
  // overhearing, so it is told only when nothing of this name is there.
  Task<Result<NamespaceId>> AttachToOld(SessionPtr session, NamespaceOptions options,
                                        Instant deadline);
  // One kAttach or kCreateSpace. A token is proven, and not sent.
  Task<Result<NamespaceId>> AskForSpace(SessionPtr session, wire::Verb verb,
                                        NamespaceOptions options, Instant deadline);
  // Attaches and registers as before.
  Task<void> Restore(SessionPtr session);
  Task<Status> Register(SessionPtr session, ClientRegions::Region& region);

  // Filled: how the server is to place these bytes itself. Empty: as payload.
  std::vector<wire::Segment> LandingOf(const RemoteSession& session, const BlockRead& read) const;
  std::vector<Group> GroupReads(const RemoteSession& session, const std::vector<BlockId>& chain,
                                const std::vector<BlockRead>& reads,
                                std::vector<BlockReadResult>& results) const;
  Task<void> GetGroup(SessionPtr session, NamespaceId space, const std::vector<BlockId>& chain,
                      const std::vector<BlockRead>& reads, Group group, Instant deadline,
                      std::vector<BlockReadResult>& results);
  void TakeResults(const std::vector<BlockRead>& reads, const Group& group,
                   const wire::GetAnswer& answer, std::vector<BlockReadResult>& results);
  std::vector<Group> GroupWrites(const RemoteSession& session, const ChainPut& put) const;
  Task<void> PutGroup(SessionPtr session, const ChainPut& put, Group group,
                      std::vector<Status>& outcomes);

  const RemoteParts parts_;
  const RemoteOptions options_;
  SessionPtr session_;
  std::string why_not_ = "not connected yet";
  std::map<std::string, NamespaceOptions> attached_;  // By name.
  Semaphore proving_;  // A connection has one challenge at a time.
  ClientRegions regions_;
  uint64_t calls_ = 0;
  Event stopping_;
  Event idle_;
  Gate background_;
};

template <typename Value, typename Message>
Task<Result<Value>> RemoteStore::Core::Ask(wire::Verb verb, Message message) {
  const Calling calling(*this);
  Result<SessionPtr> current = session();
  if (!current.ok()) co_return current.status();
  const SessionPtr kept = current.value();
  Result<std::vector<uint8_t>> body = wire::Encode(message);
  if (!body.ok()) co_return body.status();
  RemoteSession::Order order{.verb = verb,
                             .body = std::move(body).value(),
                             .deadline = CallDeadline()};
  co_return co_await kept->Ask<Value>(std::move(order));
}

template <typename Message>
Task<std::vector<Status>> RemoteStore::Core::AskAll(wire::Verb verb, size_t count,
                                                    Message message) {
  Result<std::vector<Status>> answer =
      co_await Ask<std::vector<Status>>(verb, std::move(message));
  if (!answer.ok()) co_return std::vector<Status>(count, answer.status());
  if (answer.value().size() == count) co_return std::move(answer).value();
  co_return std::vector<Status>(count, Status(Code::kUnavailable, "the answer does not fit"));
}

template <typename Message>
Task<Status> RemoteStore::Core::Tell(wire::Verb verb, Message message) {
  const Result<wire::Empty> answer = co_await Ask<wire::Empty>(verb, std::move(message));
  co_return answer.status();
}

}  // namespace cairn::kv
