// Carries requests out: from a parsed frame to the store, and back to an answer on its lane.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "kvstore/client/buffer_pool.h"
#include "kvstore/serve/session.h"

namespace cairn::kv {

// A request that has arrived whole.
struct Request {
  wire::FrameHeader header;
  std::vector<uint8_t> body = {};
  Instant deadline = kNever;
  Session::Credit credit = {};
  Semaphore::Permit body_permit = {};  // Of a large body, until the request is done.
  // Of a put with payload: its parsed body, and its bytes, one block after another, each from a
  // sector on.
  std::optional<wire::PutRequest> put = {};
  BufferPool::Buffer payload = {};
};

// Loop thread only. All that is passed in must outlive it.
class RequestHandler {
 public:
  RequestHandler(const ServerParts& parts, const ServerOptions& options, ServerStats& stats);

  // Reads the rest of the request whose header came, and starts it under the connection's gate.
  // What is beyond the limits is refused first: whoever does not take refusals is not read from.
  Task<Received> Receive(Connection& connection, wire::FrameHeader header);

 private:
  using Body = std::vector<uint8_t>;

  Task<Received> ReceivePut(Connection& connection, Request& request, bool& refused);
  Task<void> Handle(Connection& connection, Request request);
  // The answer's body; nothing when the request's is malformed.
  Task<std::optional<Body>> Perform(Connection& connection, Request& request);
  Task<std::optional<Body>> PerformSession(Connection& connection, Request& request);
  Task<std::optional<Body>> PerformStore(Session& session, Request& request);
  Task<std::optional<Body>> PerformOnChain(Session& session, Request& request);
  Task<std::optional<Body>> PerformAdmin(Request& request);
  Task<std::optional<Body>> PerformPlainAdmin(wire::Verb verb);
  Task<std::optional<Body>> PerformCluster(Session& session, Request& request);
  // For kAttach and kCreateSpace: whoever brings a proof was challenged for it on this connection.
  Task<std::optional<Body>> PerformOnSpace(Connection& connection, Request& request);
  Task<std::optional<Body>> Attach(Session& session, NamespaceOptions options);
  std::optional<Body> Register(Connection& connection, const Request& request);

  Task<void> HandleGet(Connection& connection, Request request);
  Task<void> GetAsPayload(Connection& connection, Request request, wire::GetRequest get);
  Task<void> GetIntoRegions(Connection& connection, Request request, wire::GetRequest get);
  Task<std::optional<Body>> Put(Session& session, Request& request, wire::PutRequest put);

  Task<void> Send(Connection& connection, const Request& request, Body body,
                  std::vector<ByteSpan> payload);
  Task<void> Refuse(Connection& connection, Request request, Status why);
  bool IsLate(const Request& request);

  const ServerParts& parts_;
  const ServerOptions& options_;
  ServerStats& stats_;
  BufferPool payloads_;
  Semaphore bodies_;
};

}  // namespace cairn::kv
