// A blocking TCP client for tests that must say exactly what goes over the wire.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace cairn::testing {

// Whatever hangs fails a test after this long instead of stopping the run.
inline constexpr int kHangSeconds = 60;

class RawClient {
 public:
  // `receive_bytes` above 0 asks for a small receive buffer: a client that is soon full.
  explicit RawClient(uint16_t port, int receive_bytes = 0)
      : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_bytes > 0) {
      ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes));
    }
    const timeval hang{.tv_sec = kHangSeconds, .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &hang, sizeof(hang));
    ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &hang, sizeof(hang));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ =
        ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~RawClient() { Close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool connected() const { return connected_; }

  void Close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }

  // False when the server has closed.
  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

  // Reads until what has been read and not yet taken holds `mark`; returns all up to its end.
  // Returns what there was when the server closes first.
  std::string ReadThrough(std::string_view mark) {
    for (;;) {
      const size_t at = unread_.find(mark);
      if (at != std::string::npos) return TakeFirst(at + mark.size());
      if (!Fill()) return TakeFirst(unread_.size());
    }
  }

  // One response with a Content-Length.
  std::string ReadResponse() {
    std::string head = ReadThrough("\r\n\r\n");
    const size_t at = head.find("Content-Length: ");
    if (at == std::string::npos) return head;
    const size_t length = std::stoul(head.substr(at + 16));
    while (unread_.size() < length && Fill()) {
    }
    return head + TakeFirst(std::min(length, unread_.size()));
  }

  std::string ReadToEnd() {
    while (Fill()) {
    }
    return TakeFirst(unread_.size());
  }

 private:
  bool Fill() {
    char bytes[16384];
    const ssize_t size = ::recv(socket_, bytes, sizeof(bytes), 0);
    if (size <= 0) return false;
    unread_.append(bytes, static_cast<size_t>(size));
    return true;
  }
  std::string TakeFirst(size_t size) {
    std::string taken = unread_.substr(0, size);
    unread_.erase(0, size);
    return taken;
  }

  int socket_;
  bool connected_ = false;
  std::string unread_;
};

}  // namespace cairn::testing
