// One client's connection: reads requests, lets the handler answer, writes, and watches for its
// end.
//
// Everything here runs on the server's one thread, except the ExchangeQueue.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "gateway/http/exchange_queue.h"
#include "gateway/http/server.h"

namespace cairn::gateway {

class Connection;

// What the connections of one server share. Outlives them.
struct ServerState {
  const ServerOptions options;
  Handler& handler;
  kv::Log& log;

  bool stopping = false;
  uint64_t bodies_bytes = 0;            // Reserved for bodies being received; see Connection.
  std::set<Connection*> connections{};  // Those that run.
  std::atomic<uint32_t> open = 0;       // Their number, for other threads.
  std::function<void()> when_empty{};   // Called when stopping and the last one has ended.
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(boost::asio::ip::tcp::socket socket, ServerState& state);
  ~Connection();

  // Starts serving; the connection keeps itself alive until it is closed.
  void Start();
  // Starts telling the client that there are too many connections.
  void StartRefusing();

  // Closes at once unless an answer is under way, which then is the last.
  void StopWhenIdle();
  // Closes at once; an answer under way hears that the client has gone.
  void Abort();

 private:
  template <typename T>
  using Awaitable = boost::asio::awaitable<T>;

  // How reading a request ended: with a request, with the connection, or with something to refuse.
  struct ReadEnd {
    enum class Kind { kRequest, kClosed, kRefused } kind = Kind::kClosed;
    int status = 0;
    std::string message;
  };
  static ReadEnd Refused(int status, std::string message);

  void Spawn(Awaitable<void> life);
  Awaitable<void> Serve();
  Awaitable<ReadEnd> ReadRequest();
  Awaitable<bool> ReadFirstBytes();
  Awaitable<ReadEnd> ReadBody();
  ReadEnd Failed(const boost::system::error_code& error, std::string_view part) const;
  bool ReserveBody();
  void ReleaseBody();

  Awaitable<void> Answer();
  Awaitable<bool> SendNext(ExchangeQueue::Output output);
  Awaitable<bool> WaitForMore();
  void CallHandler();
  Request TakeRequest();
  Awaitable<void> StopWatching();
  Awaitable<bool> WriteAll(std::string bytes);
  Awaitable<void> RefuseAndDrain(int status, std::string message);

  // While a request is answered, reads on: to see the client go, and to hold what it pipelines.
  void Watch();
  void OnWatched(const boost::system::error_code& error, size_t size);
  void OnGone();

  void Arm(kv::Nanos span);
  void Disarm();

  ServerState& state_;
  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer deadline_;
  boost::asio::steady_timer wake_;  // Cancelled to wake the coroutine that waits on it.
  boost::asio::cancellation_signal watch_cancel_;
  boost::beast::flat_buffer buffer_;
  std::optional<boost::beast::http::request_parser<boost::beast::http::string_body>> parser_;
  std::shared_ptr<ExchangeQueue> exchange_;

  uint64_t deadline_generation_ = 0;  // Of the last Arm or Disarm: an older expiry means nothing.
  uint64_t body_reserved_ = 0;
  bool timed_out_ = false;
  bool answering_ = false;
  bool watching_ = false;
  bool gone_ = false;
  bool stream_started_ = false;  // The head of the current answer, a stream, is out.
  Persistence persistence_ = Persistence::kKeepAlive;
  Framing framing_ = Framing::kChunked;
  BodyPart body_part_ = BodyPart::kSent;
};

}  // namespace cairn::gateway
