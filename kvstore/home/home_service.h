// Answers other nodes for the runs that this node is the home of.
#pragma once

#include <map>
#include <utility>

#include "kvstore/client/home_index.h"
#include "kvstore/home/home_map.h"
#include "kvstore/home/messages.h"

namespace cairn::kv {

// Loop thread only. All must outlive it, and every Answer must be over before it is destroyed.
//
// What it is asked for is checked against its own map first: a node that is not the home (any more)
// refuses with kUnavailable, and its epoch in the answer tells the asker to get the newer map.
class HomeService {
 public:
  struct Parts {
    HomeMap& map;
    HomeIndex& index;
  };
  explicit HomeService(Parts parts) : parts_(parts) {}

  // Never fails: a malformed request has an answer, too.
  Task<Bytes> Answer(NodeId source, Bytes request);

  // The node is lost: its clients' leases end.
  void ForgetNode(NodeId node);

 private:
  using AskerSession = std::pair<NodeId, uint64_t>;

  Task<Bytes> Dispatch(NodeId source, home::Verb verb, Bytes request);
  Task<Result<home::LoadAnswer>> Load(home::LoadRequest request);
  Task<Result<home::Empty>> File(home::FileRequest request, home::Verb verb);
  Task<Result<home::Empty>> Remove(home::RemoveRequest request);
  Task<Result<home::Empty>> Keep(home::KeepRequest request);
  Task<Result<home::Empty>> Use(home::UseRequest request);
  Task<Result<home::StatesAnswer>> States(home::StatesRequest request);
  Task<Result<home::NameAnswer>> Name(home::NameRequest request);
  Task<Result<home::GrantAnswer>> Grant(NodeId source, home::GrantRequest request);
  Task<Result<home::RenewAnswer>> Renew(NodeId source, home::RenewRequest request);
  Task<Result<home::Empty>> Release(NodeId source, home::ReleaseRequest request);
  Task<Result<home::Empty>> EndSession(NodeId source, home::EndSessionRequest request);

  // kUnavailable when this node is not the home of the group.
  Status CheckHome(uint16_t group_hash) const;
  SessionId SessionOf(NodeId source, uint64_t session);

  Parts parts_;
  std::map<AskerSession, SessionId> sessions_;
};

}  // namespace cairn::kv
