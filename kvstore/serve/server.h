// Serves one store to other processes: a unix socket with shared memory, and TCP.
//
// A client is a session: one control lane, any number of data lanes, bound to it by a random id.
// Its leases, its registered memory and its half-written puts end with it, and it ends with its
// control lane, or when nothing has been heard of it for `session_timeout`. What it must do first
// is attach to a namespace: verbs that name another one are refused with kInvalid.
//
// Limits. A session may have `requests_max` requests and `session_bytes_max` bytes of inline
// payload in flight (bytes in shared memory do not count); the hello tells it so. What goes beyond
// is answered kOverloaded at once. Inline payload of all sessions together is bounded by
// `payload_bytes_max`: a data lane waits for its share, and is not read from meanwhile. Whoever
// does not take its answers for `stall_timeout` is cut off. A malformed frame ends the session.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kvstore/base/log.h"
#include "kvstore/base/result.h"
#include "kvstore/base/units.h"
#include "kvstore/client/block_store.h"
#include "kvstore/client/store_admin.h"
#include "kvstore/control/cluster_admin.h"
#include "kvstore/io/clock.h"
#include "kvstore/io/payload_memory.h"
#include "kvstore/os/poller.h"
#include "kvstore/os/tls.h"

namespace cairn::kv {

struct ServerOptions {
  // A socket file, e.g. "/run/cairn/cairn.sock", with mode 0660; empty: none. One that is left of
  // a dead process is replaced.
  std::string unix_path = {};
  // "127.0.0.1:7400", "[::1]:0", ...; empty: none. Without `tls` nothing on it is encrypted: keep
  // it on loopback or on a network that is trusted.
  std::string tcp_address = {};
  // Has a certificate. Clients over TCP must speak TLS 1.3, and where it has an authority show a
  // certificate of its signing.
  std::shared_ptr<const TlsContext> tls = nullptr;
  uint32_t sessions_max = 4096;
  uint32_t requests_max = 256;  // In flight, of one session.
  uint64_t session_bytes_max = 128 * kMiB;
  uint64_t payload_bytes_max = 512 * kMiB;  // At least kBlockSizeMax.
  uint32_t regions_max = 64;                // Of one session.
  uint64_t region_bytes_max = 64 * kGiB;    // Of one session.
  Nanos session_timeout = Seconds(10);
  Nanos stall_timeout = Seconds(10);
  // After a request the loop spins for more before it sleeps, for at most so long; 0: never.
  Nanos spin_after_request = Micros(50);
  // Who may use the verbs of StoreAdmin and ClusterAdmin: everybody on the unix socket (its file
  // mode guards it), and on TCP who names this token; empty: nobody on TCP.
  std::string admin_token = {};
};

// Everything must outlive the server.
struct ServerParts {
  Poller& poller;
  Clock& clock;
  Log& log;
  BlockStore& store;
  SessionHost& sessions;
  StoreAdmin* admin = nullptr;  // Null: its verbs are refused.
  ClusterAdmin* cluster = nullptr;  // Null: the store is no cluster's; its verbs are told so.
  PayloadMemory* network = nullptr;  // Of the cluster; see BufferPool.
};

struct ServerStats {
  uint64_t sessions = 0;  // Now.
  uint64_t sessions_opened = 0;
  uint64_t sessions_timed_out = 0;  // Nothing was heard of them, or they took no answers.
  uint64_t sessions_refused = 0;    // Too many, or of another version.
  uint64_t handshakes_refused = 0;  // Connections that did not speak TLS, or showed no good
                                    // certificate.
  uint64_t connections = 0;         // Now.
  uint64_t regions = 0;             // Registered now, or still in use by a read.
  uint64_t region_bytes = 0;
  uint64_t requests = 0;
  uint64_t requests_in_flight = 0;  // Now.
  uint64_t requests_overloaded = 0;
  uint64_t requests_late = 0;  // Dropped: their deadline had passed before they began.
  uint64_t malformed_frames = 0;
  uint64_t payload_bytes = 0;      // Held now for inline gets and puts.
  uint64_t shared_bytes_read = 0;  // Landed in clients' memory without passing a socket.
  uint64_t shared_bytes_written = 0;
  uint64_t inline_bytes_read = 0;  // Sent through sockets.
  uint64_t inline_bytes_written = 0;
};

// visit(name, is_gauge, value, help) for each field of the stats, in a fixed order.
template <typename Visit>
void VisitServerStats(const ServerStats& stats, Visit&& visit) {
  visit("sessions", true, stats.sessions, "Clients connected now.");
  visit("sessions_opened", false, stats.sessions_opened, "Clients that have connected.");
  visit("sessions_timed_out", false, stats.sessions_timed_out, "Clients cut off as silent.");
  visit("sessions_refused", false, stats.sessions_refused, "Clients refused at their hello.");
  visit("handshakes_refused", false, stats.handshakes_refused, "TLS handshakes that failed.");
  visit("connections", true, stats.connections, "Sockets open now.");
  visit("regions", true, stats.regions, "Regions of shared memory mapped now.");
  visit("region_bytes", true, stats.region_bytes, "Bytes of shared memory mapped now.");
  visit("requests", false, stats.requests, "Requests received.");
  visit("requests_in_flight", true, stats.requests_in_flight, "Requests being worked on now.");
  visit("requests_overloaded", false, stats.requests_overloaded, "Requests beyond the credits.");
  visit("requests_late", false, stats.requests_late, "Requests dropped past their deadline.");
  visit("malformed_frames", false, stats.malformed_frames, "Frames that ended their session.");
  visit("payload_bytes", true, stats.payload_bytes, "Bytes held for inline payload now.");
  visit("shared_bytes_read", false, stats.shared_bytes_read, "Bytes read into shared memory.");
  visit("shared_bytes_written", false, stats.shared_bytes_written, "Bytes put from it.");
  visit("inline_bytes_read", false, stats.inline_bytes_read, "Bytes read through sockets.");
  visit("inline_bytes_written", false, stats.inline_bytes_written, "Bytes put through sockets.");
}

// On the poller's loop thread only.
class Server {
 public:
  // Listens and serves from now on. kConflict: the address or the socket file is in use.
  // kInvalid: no address at all, one that is not of this machine, limits that contradict.
  static Result<std::unique_ptr<Server>> Start(ServerParts parts, ServerOptions options);
  // Stop() must have been awaited.
  ~Server();

  // The port that TCP clients connect to; 0 when it does not listen there.
  uint16_t tcp_port() const;
  const ServerStats& stats() const;

  // Takes no more clients, ends all sessions, and resolves when nothing is in flight. Once.
  Task<void> Stop();

 private:
  class Core;
  explicit Server(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

}  // namespace cairn::kv
