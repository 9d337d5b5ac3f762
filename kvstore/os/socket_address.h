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
  static Result<SocketAddress> Parse(std::string_view text);

  // A new socket. kUnavailable when the process has too many open.
  Result<int> NewSocket() const;
  // Listens there. kConflict: the address is in use. kInvalid: it is not of this machine.
  Result<int> Listen() const;
  // The port of a listening socket, which the kernel chose if port 0 was asked for.
  static uint16_t PortOf(int socket);

  sockaddr& address() { return reinterpret_cast<sockaddr&>(storage_); }
  uint32_t size() const { return size_; }
  const std::string& text() const { return text_; }

 private:
  sockaddr_storage storage_{};
  uint32_t size_ = 0;
  std::string text_;
};

}  // namespace cairn::kv
