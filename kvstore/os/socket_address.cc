// Looks addresses up with the resolver of the C library.
#include "kvstore/os/socket_address.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace cairn::kv {
namespace {

constexpr int kBacklog = 512;

Status NotAnAddress(std::string_view text, std::string_view reason) {
  std::string message(text);
  message.append(" is no address to use: ").append(reason);
  return {Code::kInvalid, std::move(message)};
}

}  // namespace

Result<SocketAddress> SocketAddress::Parse(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == text.size()) {
    return NotAnAddress(text, "it is not of the form HOST:PORT");
  }
  std::string host(text.substr(0, colon));
  const std::string port(text.substr(colon + 1));
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (error != 0) return NotAnAddress(text, gai_strerror(error));
  SocketAddress address;
  std::memcpy(&address.storage_, found->ai_addr, found->ai_addrlen);
  address.size_ = found->ai_addrlen;
  address.text_ = text;
  freeaddrinfo(found);
  return address;
}

Result<int> SocketAddress::NewSocket() const {
  const int fd = socket(storage_.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    return Status(Code::kUnavailable, std::string("cannot make a socket: ") + std::strerror(errno));
  }
  return fd;
}

Result<int> SocketAddress::Listen() const {
  KV_ASSIGN_OR_RETURN(const int fd, NewSocket());
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(fd, reinterpret_cast<const sockaddr*>(&storage_), size_) == 0 &&
      listen(fd, kBacklog) == 0) {
    return fd;
  }
  const int error = errno;
  close(fd);
  const Code code = error == EADDRINUSE                              ? Code::kConflict
                    : error == EADDRNOTAVAIL || error == EACCES ? Code::kInvalid
                                                                     : Code::kUnavailable;
  return Status(code, "cannot listen on " + text_ + ": " + std::strerror(error));
}

uint16_t SocketAddress::PortOf(int socket) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return 0;
  if (storage.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6&>(storage).sin6_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in&>(storage).sin_port);
}

}  // namespace cairn::kv
