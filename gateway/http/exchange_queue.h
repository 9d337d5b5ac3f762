// An Exchange as a bounded queue between its handler and its connection.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "gateway/http/exchange.h"

namespace cairn::gateway {

class ExchangeQueue final : public Exchange {
 public:
  // `wake` is called when Take has something new, at most once per Take, under this object's lock:
  // it must only post. It is not called any more once Detach has returned.
  ExchangeQueue(uint64_t pending_bytes_max, std::function<void()> wake);

  void Respond(Response response) override;
  void StartStream(Response head, std::string_view keep_alive) override;
  bool Write(std::string_view bytes) override;
  void Finish() override;
  void WhenGone(std::function<void()> callback) override;

  // For the connection.
  struct Output {
    std::optional<Response> response;     // The whole answer.
    std::optional<Response> stream_head;  // Or the head of a stream, once;
    std::string bytes;                    // what to send of its body next;
    bool finished = false;                // and whether that was all.
    bool gone = false;                    // The buffer ran full: close without an end.
  };
  Output Take();
  std::string keep_alive();
  // The client has gone.
  void MarkGone();
  // The connection is done with this exchange. Calls MarkGone unless the answer was complete.
  void Detach();

 private:
  void WakeLocked();

  const uint64_t pending_bytes_max_;

  std::mutex mutex_;  // Protects all below.
  std::function<void()> wake_;
  bool wake_pending_ = false;
  std::optional<Response> response_;
  std::optional<Response> stream_head_;
  std::string keep_alive_;
  std::string pending_;
  bool stream_started_ = false;
  bool finished_ = false;
  bool gone_ = false;
  std::function<void()> when_gone_;
};

}  // namespace cairn::gateway
