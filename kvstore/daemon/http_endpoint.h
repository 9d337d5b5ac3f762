// Serves /metrics, /healthz and /readyz over HTTP, by threads of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "kvstore/base/log.h"
#include "kvstore/base/result.h"

namespace cairn::kv {

struct HttpAnswer {
  int status = 200;
  std::string body;
};

// What is served. Called on the endpoint's threads, several at once: must be thread-safe, and must
// not block for long.
struct HttpPages {
  std::function<HttpAnswer()> metrics;
  std::function<HttpAnswer()> health;  // Not 200: restart it.
  std::function<HttpAnswer()> ready;   // Not 200: send nobody there.
};

class HttpEndpoint {
 public:
  // `address` is "127.0.0.1:9511", "[::1]:9511" or "localhost:9511"; port 0 takes any free one.
  // kConflict: it cannot be listened on (the message says why). `log` must outlive the result.
  static Result<std::unique_ptr<HttpEndpoint>> Start(const std::string& address, HttpPages pages,
                                                     Log& log);
  // Waits for the answers in progress.
  ~HttpEndpoint();

  uint16_t port() const;

 private:
  class Core;
  explicit HttpEndpoint(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

}  // namespace cairn::kv
