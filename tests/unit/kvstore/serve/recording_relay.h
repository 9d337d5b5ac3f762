// Passes bytes on between clients and a server, and keeps what the clients sent.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kvstore/base/check.h"
#include "kvstore/os/socket_address.h"

namespace cairn::kv {

class RecordingRelay {
 public:
  RecordingRelay(std::string listen, std::string server)
      : server_(std::move(server)),
        listener_(SocketAddress::Parse(listen).value().Listen().value()),
        thread_([this] { Run(); }) {}
  ~RecordingRelay() { (void)Stop(); }

  // Where clients connect to when it listens on TCP.
  uint16_t port() const { return SocketAddress::PortOf(listener_); }
  // Ends it: what the clients sent, by connection, in the order they came.
  std::vector<std::vector<uint8_t>> Stop() {
    if (thread_.joinable()) {
      stop_ = true;
      thread_.join();
      for (const Pair& pair : pairs_) Close(pair);
      close(listener_);
    }
    std::vector<std::vector<uint8_t>> sent;
    for (const Pair& pair : pairs_) sent.push_back(pair.sent);
    return sent;
  }

 private:
  struct Pair {
    int client = -1;
    int server = -1;
    std::vector<uint8_t> sent = {};
  };

  static void Close(const Pair& pair) {
    for (const int socket : {pair.client, pair.server}) {
      if (socket >= 0) close(socket);
    }
  }
  void Run() {
    while (!stop_) {
      std::vector<pollfd> waits{{.fd = listener_, .events = POLLIN, .revents = 0}};
      for (const Pair& pair : pairs_) {
        waits.push_back({.fd = pair.client, .events = POLLIN, .revents = 0});
        waits.push_back({.fd = pair.server, .events = POLLIN, .revents = 0});
      }
      if (poll(waits.data(), waits.size(), 5) <= 0) continue;
      for (size_t i = 0; 2 * i + 1 < waits.size(); ++i) {
        Pair& pair = pairs_[i];
        if (waits[2 * i + 1].revents != 0) Pass(pair.client, pair.server, &pair.sent);
        if (waits[2 * i + 2].revents != 0) Pass(pair.server, pair.client, nullptr);
      }
      if (waits[0].revents != 0) Accept();
    }
  }
  void Accept() {
    SocketAddress address = SocketAddress::Parse(server_).value();
    Pair pair{.client = accept(listener_, nullptr, nullptr),
              .server = address.NewSocket().value()};
    KV_CHECK(pair.client >= 0);
    KV_CHECK(connect(pair.server, &address.address(), address.size()) == 0);
    pairs_.push_back(std::move(pair));
  }
  // An end that is reached is closed, and polled no more.
  static void Pass(int& from, int to, std::vector<uint8_t>* copy) {
    std::array<uint8_t, 16'384> bytes;
    const ssize_t size = recv(from, bytes.data(), bytes.size(), 0);
    if (size <= 0) {
      shutdown(to, SHUT_RDWR);
      close(from);
      from = -1;
      return;
    }
    if (copy != nullptr) copy->insert(copy->end(), bytes.begin(), bytes.begin() + size);
    // One that has closed takes no more; its end is noticed when it is polled.
    (void)!send(to, bytes.data(), static_cast<size_t>(size), MSG_NOSIGNAL);
  }

  const std::string server_;
  const int listener_;
  std::atomic<bool> stop_ = false;
  std::vector<Pair> pairs_;  // The thread's, until it has ended.
  std::thread thread_;
};

}  // namespace cairn::kv
