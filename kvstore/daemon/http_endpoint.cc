// CivetWeb does the HTTP; three paths have a handler, everything else is its 404.
#include "kvstore/daemon/http_endpoint.h"

#include <civetweb.h>
#include <pthread.h>

#include <array>
#include <cstring>
#include <utility>

namespace cairn::kv {
namespace {

std::string ListenText(const std::string& address) {
  constexpr std::string_view kName = "localhost:";
  return address.starts_with(kName) ? "127.0.0.1:" + address.substr(kName.size()) : address;
}

const char* Reason(int status) {
  switch (status) {
    case 200: return "OK";
    case 405: return "Method Not Allowed";
    default: return "Service Unavailable";
  }
}

void Send(mg_connection* connection, const HttpAnswer& answer, const char* type) {
  const bool head = std::strcmp(mg_get_request_info(connection)->request_method, "HEAD") == 0;
  mg_printf(connection,
            "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
            "Cache-Control: no-store\r\nConnection: close\r\n\r\n",
            answer.status, Reason(answer.status), type, answer.body.size());
  if (!head) mg_write(connection, answer.body.data(), answer.body.size());
}

}  // namespace

class HttpEndpoint::Core {
 public:
  Core(HttpPages pages, Log& log) : pages_(std::move(pages)), log_(log) {
    mg_init_library(MG_FEATURES_DEFAULT);
  }
  ~Core() {
    if (context_ != nullptr) mg_stop(context_);
    mg_exit_library();
  }

  Status Listen(const std::string& address) {
    const std::string listen = ListenText(address);
    const std::array<const char*, 11> options = {
        "listening_ports", listen.c_str(), "num_threads", "2",
        "request_timeout_ms", "5000", "enable_keep_alive", "no",
        "connection_queue", "32", nullptr};
    mg_callbacks callbacks{};
    callbacks.log_message = OnLog;
    context_ = mg_start(&callbacks, this, const_cast<const char**>(options.data()));
    if (context_ == nullptr) {
      return Status(Code::kConflict, "cannot serve metrics on " + address + ": " +
                                         (problem_.empty() ? "is it in use?" : problem_) +
                                         "; choose another listen.metrics");
    }
    mg_set_request_handler(context_, "/metrics$", OnMetrics, this);
    mg_set_request_handler(context_, "/healthz$", OnHealth, this);
    mg_set_request_handler(context_, "/readyz$", OnReady, this);
    mg_set_request_handler(context_, "/", OnOther, this);
    std::array<mg_server_port, 4> ports{};
    if (mg_get_server_ports(context_, static_cast<int>(ports.size()), ports.data()) > 0) {
      port_ = static_cast<uint16_t>(ports[0].port);
    }
    return Status();
  }

  uint16_t port() const { return port_; }

 private:
  static int OnLog(const mg_connection* connection, const char* message) {
    mg_context* context = connection == nullptr ? nullptr : mg_get_context(connection);
    auto* self = connection == nullptr ? nullptr : static_cast<Core*>(mg_get_user_data(context));
    if (self != nullptr) {
      if (pthread_equal(pthread_self(), self->starter_) != 0) self->problem_ = message;
      self->log_.Debug(std::string("http: ").append(message));
    }
    return 1;
  }
  static int Answer(mg_connection* connection, const std::function<HttpAnswer()>& page,
                    const char* type) {
    const std::string method = mg_get_request_info(connection)->request_method;
    const HttpAnswer answer = method == "GET" || method == "HEAD"
                                  ? page()
                                  : HttpAnswer{405, "only GET and HEAD\n"};
    Send(connection, answer, type);
    return answer.status;
  }
  static int OnMetrics(mg_connection* connection, void* self) {
    return Answer(connection, static_cast<Core*>(self)->pages_.metrics,
                  "text/plain; version=0.0.4; charset=utf-8");
  }
  static int OnHealth(mg_connection* connection, void* self) {
    return Answer(connection, static_cast<Core*>(self)->pages_.health, "text/plain");
  }
  static int OnReady(mg_connection* connection, void* self) {
    return Answer(connection, static_cast<Core*>(self)->pages_.ready, "text/plain");
  }
  static int OnOther(mg_connection* connection, void*) {
    static constexpr char kText[] = "There are /metrics, /healthz and /readyz.\n";
    mg_printf(connection,
              "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
              "Connection: close\r\n\r\n%s",
              sizeof(kText) - 1, kText);
    return 404;
  }

  const HttpPages pages_;
  Log& log_;
  // CivetWeb's threads log too, before mg_start has returned on this one: they may read no more
  // than what is constant.
  const pthread_t starter_ = pthread_self();
  std::string problem_;  // The starter's, as are those below.
  mg_context* context_ = nullptr;
  uint16_t port_ = 0;
};

HttpEndpoint::HttpEndpoint(std::unique_ptr<Core> core) : core_(std::move(core)) {}
HttpEndpoint::~HttpEndpoint() = default;
uint16_t HttpEndpoint::port() const { return core_->port(); }

Result<std::unique_ptr<HttpEndpoint>> HttpEndpoint::Start(const std::string& address,
                                                          HttpPages pages, Log& log) {
  auto core = std::make_unique<Core>(std::move(pages), log);
  KV_RETURN_IF_ERROR(core->Listen(address));
  return std::unique_ptr<HttpEndpoint>(new HttpEndpoint(std::move(core)));
}

}  // namespace cairn::kv
