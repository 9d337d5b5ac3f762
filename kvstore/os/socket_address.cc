// Looks addresses up with the resolver of the C library.
#include "kvstore/os/socket_address.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

namespace cairn::kv {
namespace {

constexpr int kBacklog = 512;
constexpr std::string_view kUnixPrefix = "unix:";
constexpr mode_t kSocketFileMode = 0660;

Status NotAnAddress(std::string_view text, std::string_view reason) {
  std::string message(text);
  message.append(" is no address to use: ").append(reason);
  return {Code::kInvalid, std::move(message)};
}

}  // namespace

Result<SocketAddress> SocketAddress::ParseUnix(std::string_view path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(name.sun_path)) {
    return NotAnAddress(path, "the path of a socket file has 1 to 107 bytes");
  }
  std::memcpy(name.sun_path, path.data(), path.size());
  SocketAddress address;
  std::memcpy(&address.storage_, &name, sizeof(name));
  address.size_ = static_cast<uint32_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
  address.text_ = std::string(kUnixPrefix).append(path);
  return address;
}

Result<SocketAddress> SocketAddress::Parse(std::string_view text) {
  if (text.starts_with(kUnixPrefix)) return ParseUnix(text.substr(kUnixPrefix.size()));
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

bool SocketAddress::is_loopback() const {
  if (storage_.ss_family == AF_INET) {
    const auto* name = reinterpret_cast<const sockaddr_in*>(&storage_);
    return (ntohl(name->sin_addr.s_addr) >> 24) == IN_LOOPBACKNET;
  }
  if (storage_.ss_family != AF_INET6) return is_unix();
  const auto* name = reinterpret_cast<const sockaddr_in6*>(&storage_);
  return IN6_IS_ADDR_LOOPBACK(&name->sin6_addr);
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
  int error = Bind(fd);
  if (error == 0) {
    if (listen(fd, kBacklog) == 0) return fd;
    error = errno;
  }
  close(fd);
  const bool invalid = error == EADDRNOTAVAIL || error == EACCES || error == ENOENT ||
                       error == ENOTDIR || error == EROFS;
  const Code code = error == EADDRINUSE ? Code::kConflict
                    : invalid           ? Code::kInvalid
                                        : Code::kUnavailable;
  return Status(code, "cannot listen on " + text_ + ": " + std::strerror(error));
}

int SocketAddress::Bind(int socket) const {
  const auto* name = reinterpret_cast<const sockaddr*>(&storage_);
  if (!is_unix()) return bind(socket, name, size_) == 0 ? 0 : errno;
  const char* path = reinterpret_cast<const sockaddr_un*>(&storage_)->sun_path;
  if (bind(socket, name, size_) != 0) {
    if (errno != EADDRINUSE) return errno;
    struct stat file{};
    const bool is_socket = lstat(path, &file) == 0 && S_ISSOCK(file.st_mode);
    if (!is_socket || !NobodyListens()) return EADDRINUSE;
    if (unlink(path) != 0 || bind(socket, name, size_) != 0) return errno;
  }
  // Nobody can connect before the mode is right: nobody listens yet.
  return chmod(path, kSocketFileMode) == 0 ? 0 : errno;
}

bool SocketAddress::NobodyListens() const {
  const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe < 0) return false;
  const auto* name = reinterpret_cast<const sockaddr*>(&storage_);
  const bool refused = connect(probe, name, size_) != 0 && errno == ECONNREFUSED;
  close(probe);
  return refused;
}

SocketAddress SocketAddress::WithPort(uint16_t port) const {
  SocketAddress other = *this;
  if (storage_.ss_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6&>(other.storage_).sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in&>(other.storage_).sin_port = htons(port);
  }
  return other;
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

std::string SocketAddress::PeerHostOf(int socket) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  auto& address = reinterpret_cast<sockaddr&>(storage);
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (getpeername(socket, &address, &size) != 0 ||
      getnameinfo(&address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) {
    return "?";
  }
  return text.data();
}

}  // namespace cairn::kv
