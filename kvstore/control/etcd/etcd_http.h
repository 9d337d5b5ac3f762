// POST requests to the first of several servers that answers, through libcurl. Blocks.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "kvstore/base/result.h"
#include "kvstore/base/time.h"
#include "kvstore/base/units.h"

namespace cairn::kv {

struct EtcdOptions {
  // "http://127.0.0.1:2379" or "https://...", one for each member of the cluster.
  std::vector<std::string> endpoints;
  // Files in PEM form. Empty: the system's authorities; no certificate of our own.
  std::string ca_file = {};
  std::string certificate_file = {};
  std::string key_file = {};
};

struct HttpReply {
  long status = 0;  // 0: the time was up while the answer was still coming.
  std::string body;
};

// Any threads at once.
class EtcdHttp {
 public:
  explicit EtcdHttp(const EtcdOptions& options);
  ~EtcdHttp();
  EtcdHttp(const EtcdHttp&) = delete;
  EtcdHttp& operator=(const EtcdHttp&) = delete;

  enum class Resend : uint8_t {
    kUnsent,  // Not once it may have reached a server.
    kFreely,
  };
  // Called with the body so far whenever more has come; true: that is enough.
  using Enough = std::function<bool(const std::string& body)>;

  // kUnavailable when no server could be reached, or the connection broke; kDeadline when none
  // answered within `timeout`.
  Result<HttpReply> Post(const std::string& path, const std::string& body, Nanos timeout,
                          Resend resend, const Enough& enough);

 private:
  struct Exchange;

  Result<HttpReply> PostTo(const std::string& endpoint, const std::string& path,
                            const std::string& body, Nanos timeout, const Enough& enough,
                            bool& sent);
  void* TakeHandle();
  void GiveHandle(void* handle);

  const EtcdOptions options_;
  std::atomic<size_t> preferred_{0};  // The endpoint that answered last.
  std::mutex mutex_;
  std::vector<void*> idle_;  // Protected by mutex_. With their open connections.
};

}  // namespace cairn::kv
