// What the benchmarks of sockets share: figures against a baseline, and a bare socket as one.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "kvstore/base/bytes.h"

namespace cairn::bench {

struct Figure {
  std::string name;
  double value = 0;     // MB/s.
  double baseline = 0;  // MB/s.
  std::string against;
};

inline double Since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

inline double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

inline void Must(bool ok, const std::string& what) {
  if (ok) return;
  std::fprintf(stderr, "benchmark: %s\n", what.c_str());
  std::exit(1);
}

// Seconds for `count` blocks through one TCP connection on loopback, from one thread to another.
inline double CopyThroughSocket(uint64_t unit, size_t count) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  Must(bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0, "bind failed");
  Must(listen(listener, 1) == 0, "listen failed");
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  kv::Bytes source(unit);
  kv::Bytes target(unit);
  std::thread sender([&] {
    const int out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    Must(connect(out, reinterpret_cast<sockaddr*>(&address), size) == 0, "connect failed");
    for (size_t i = 0; i < count; ++i) {
      for (size_t sent = 0; sent < unit;) {
        const ssize_t step = send(out, source.data() + sent, unit - sent, MSG_NOSIGNAL);
        Must(step > 0, "send failed");
        sent += static_cast<size_t>(step);
      }
    }
    close(out);
  });
  const int in = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  const auto begin = std::chrono::steady_clock::now();
  for (size_t i = 0; i < count; ++i) {
    for (size_t got = 0; got < unit;) {
      const ssize_t step = recv(in, target.data() + got, unit - got, 0);
      Must(step > 0, "recv failed");
      got += static_cast<size_t>(step);
    }
  }
  const double seconds = Since(begin);
  sender.join();
  close(in);
  close(listener);
  return seconds;
}

inline void Report(const std::vector<Figure>& figures, const std::string& path) {
  std::string json = "[";
  for (const Figure& figure : figures) {
    const double ratio = figure.value / figure.baseline;
    std::printf("%-24s %8.0f MB/s, %s %8.0f MB/s, ratio %.2f\n", figure.name.c_str(),
                figure.value, figure.against.c_str(), figure.baseline, ratio);
    char line[256];
    std::snprintf(line, sizeof(line),
                  "%s{\"name\": \"%s\", \"value\": %.1f, \"unit\": \"MB/s\", \"baseline\": %.1f, "
                  "\"ratio\": %.4f}",
                  json.size() > 1 ? ", " : "", figure.name.c_str(), figure.value, figure.baseline,
                  ratio);
    json += line;
  }
  if (!path.empty()) std::ofstream(path) << json << "]\n";
}

}  // namespace cairn::bench
