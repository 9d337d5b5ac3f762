// An HTTP/1.1 server: keep-alive, streaming, bounded in every direction. One thread of its own.
//
// Limits: header and body size, body bytes of all requests together, connections, what a slow
// reader may leave unread, and a deadline for each thing that a client can be slow at.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gateway/http/exchange.h"
#include "gateway/http/message.h"
#include "kvstore/base/log.h"
#include "kvstore/base/result.h"
#include "kvstore/base/time.h"
#include "kvstore/base/units.h"

namespace cairn::gateway {

struct ServerOptions {
  std::string address = "127.0.0.1";  // An IP address, not a name.
  uint16_t port = 0;                  // 0: any free one; ask port().

  uint32_t connections_max = 1024;  // Further ones get 503.
  uint32_t header_bytes_max = 64 * kv::kKiB;
  uint64_t body_bytes_max = 16 * kv::kMiB;       // Of one request: 413.
  uint64_t bodies_bytes_max = 256 * kv::kMiB;    // Of all being received: 503.
  uint64_t stream_pending_bytes_max = kv::kMiB;  // Unread by one slow client: it is dropped.
  uint64_t pipelined_bytes_max = 64 * kv::kKiB;  // Read ahead while a request is answered.

  kv::Nanos idle_max = kv::Seconds(75);         // Between requests.
  kv::Nanos header_read_max = kv::Seconds(15);  // From a request's first byte to its header's end.
  kv::Nanos body_read_max = kv::Seconds(60);
  kv::Nanos write_stall_max = kv::Seconds(30);   // Without one byte accepted by the client.
  kv::Nanos keep_alive_every = kv::Seconds(10);  // Comments in a silent stream.
  kv::Nanos stop_grace = kv::Seconds(10);        // For answers under way when Stop is called.
};

class Handler {
 public:
  virtual ~Handler() = default;

  // Called on the server's thread: must not block. Answers through `exchange`, now or later, from
  // any thread.
  virtual void Handle(Request request, std::shared_ptr<Exchange> exchange) = 0;
  // The body and headers of an answer that the server itself gives: 400, 408, 413, 431, 503, 500.
  virtual Response Refuse(int status, const std::string& message) = 0;
};

class Server {
 public:
  virtual ~Server() = default;  // Calls Stop.

  // Listens and starts the thread. kConflict: the port is in use; kInvalid: the address is not one
  // of this machine's, or not an address; kUnavailable: anything else. Both references must
  // outlive the server.
  static kv::Result<std::unique_ptr<Server>> Start(ServerOptions options, Handler& handler,
                                                   kv::Log& log);

  virtual uint16_t port() const = 0;
  virtual uint32_t connections() const = 0;  // Open now. Any thread.

  // Accepts nothing more, closes idle connections, gives answers under way `stop_grace` to end,
  // then cuts them. Returns when all are closed: no call to the handler is running or will come.
  // Any thread but the server's own. A second call does nothing.
  virtual void Stop() = 0;
};

}  // namespace cairn::gateway
