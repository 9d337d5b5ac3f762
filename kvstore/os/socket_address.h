// Addresses as people write them, and sockets made from them.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "kvstore/base/result.h"

namespace cairn::kv {

class SocketAddress {
 public:
  SocketAddress() = default;
  // "127.0.0.1:7400", "[::1]:0", "localhost:7400". A name is looked up, which may block.
  // "unix:/run/cairn.sock": a socket file.
  static Result<SocketAddress> Parse(std::string_view text);

  // A new socket. kUnavailable when the process has too many open.
  Result<int> NewSocket() const;
  // Listens there. kConflict: the address is in use. kInvalid: it is not of this machine, or the
  // file cannot be made. A socket file gets mode 0660; one that nobody listens on is replaced.
  Result<int> Listen() const;
  // The port of a listening socket, which the kernel chose if port 0 was asked for.
  static uint16_t PortOf(int socket);
  // The host at the other end of a connection; "?" when that is gone already.
  static std::string PeerHostOf(int socket);

  // The same address with another port.
  SocketAddress WithPort(uint16_t port) const;

  sockaddr& address() { return reinterpret_cast<sockaddr&>(storage_); }
  uint32_t size() const { return size_; }
  // Reached from this machine only.
  bool is_loopback() const;
  bool is_unix() const { return storage_.ss_family == AF_UNIX; }
  const std::string& text() const { return text_; }

 private:
  static Result<SocketAddress> ParseUnix(std::string_view path);
  // 0, or an errno.
  int Bind(int socket) const;
  bool NobodyListens() const;

  sockaddr_storage storage_{};
  uint32_t size_ = 0;
  std::string text_;
};

}  // namespace cairn::kv
