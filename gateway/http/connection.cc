// The life of one connection: read, answer, again.
#include "gateway/http/connection.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/read.hpp>
#include <chrono>
#include <exception>
#include <utility>

namespace cairn::gateway {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

namespace {

// Errors come as values.
constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);

constexpr size_t kReadBytes = 4096;
// After a refusal: a client that is still sending must be able to read why before it is cut off.
constexpr uint64_t kDrainBytesMax = 64 * kv::kMiB;
constexpr kv::Nanos kDrainMax = kv::Seconds(5);

std::chrono::nanoseconds Chrono(kv::Nanos span) { return std::chrono::nanoseconds(span.value); }

}  // namespace

Connection::Connection(asio::ip::tcp::socket socket, ServerState& state)
    : state_(state),
      socket_(std::move(socket)),
      deadline_(socket_.get_executor()),
      wake_(socket_.get_executor()) {
  state_.connections.insert(this);
  state_.open.store(static_cast<uint32_t>(state_.connections.size()));
}

Connection::~Connection() {
  ReleaseBody();
  state_.connections.erase(this);
  state_.open.store(static_cast<uint32_t>(state_.connections.size()));
  if (state_.stopping && state_.connections.empty() && state_.when_empty) state_.when_empty();
}

void Connection::Start() { Spawn(Serve()); }

void Connection::StartRefusing() {
  persistence_ = Persistence::kClose;
  Spawn(RefuseAndDrain(503, "too many connections are open; try again in a moment"));
}

void Connection::Spawn(Awaitable<void> life) {
  asio::co_spawn(socket_.get_executor(), std::move(life),
                 [self = shared_from_this()](std::exception_ptr thrown) {
                   if (thrown) self->state_.log.Error("http: a connection ended by an exception");
                   if (self->exchange_) self->exchange_->Detach();
                   self->Disarm();
                   error_code ignored;
                   self->socket_.close(ignored);
                 });
}

void Connection::StopWhenIdle() {
  persistence_ = Persistence::kClose;
  if (!answering_) Abort();
}

void Connection::Abort() {
  OnGone();
  error_code ignored;
  socket_.close(ignored);
}

asio::awaitable<void> Connection::Serve() {
  for (;;) {
    ReadEnd end = co_await ReadRequest();
    Disarm();
    if (end.kind == ReadEnd::Kind::kRefused) {
      co_await RefuseAndDrain(end.status, std::move(end.message));
      co_return;
    }
    if (end.kind == ReadEnd::Kind::kClosed) co_return;
    co_await Answer();
    if (gone_ || persistence_ == Persistence::kClose) break;
  }
  error_code ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
}

// Reading.

asio::awaitable<Connection::ReadEnd> Connection::ReadRequest() {
  if (buffer_.size() == 0) {
    const bool any = co_await ReadFirstBytes();
    if (!any) co_return ReadEnd();
  }
  parser_.emplace();
  parser_->header_limit(state_.options.header_bytes_max);
  parser_->body_limit(state_.options.body_bytes_max);
  Arm(state_.options.header_read_max);
  auto [error, size] = co_await http::async_read_header(socket_, buffer_, *parser_, kTuple);
  if (error) co_return Failed(error, "header");

  const auto& message = parser_->get();
  framing_ = message.version() >= 11 ? Framing::kChunked : Framing::kUntilClose;
  body_part_ = message.method() == http::verb::head ? BodyPart::kOmitted : BodyPart::kSent;
  const bool keep = message.keep_alive() && !state_.stopping;
  persistence_ = keep ? Persistence::kKeepAlive : Persistence::kClose;
  if (!ReserveBody()) {
    co_return Refused(503, "too many request bodies are being received; try again in a moment");
  }
  co_return co_await ReadBody();
}

// Between requests there is nothing to answer: a client that stays silent is just closed.
asio::awaitable<bool> Connection::ReadFirstBytes() {
  Arm(state_.options.idle_max);
  auto [error, size] = co_await socket_.async_read_some(buffer_.prepare(kReadBytes), kTuple);
  if (error) co_return false;
  buffer_.commit(size);
  co_return true;
}

asio::awaitable<Connection::ReadEnd> Connection::ReadBody() {
  ReadEnd request;
  request.kind = ReadEnd::Kind::kRequest;
  if (parser_->is_done()) co_return request;
  const bool waits = parser_->get()[http::field::expect] == "100-continue";
  if (waits && framing_ == Framing::kChunked) {
    std::string proceed = "HTTP/1.1 100 Continue\r\n\r\n";
    const bool written = co_await WriteAll(std::move(proceed));
    if (!written) co_return ReadEnd();
  }
  Arm(state_.options.body_read_max);
  auto [error, size] = co_await http::async_read(socket_, buffer_, *parser_, kTuple);
  if (error) co_return Failed(error, "body");
  co_return request;
}

Connection::ReadEnd Connection::Refused(int status, std::string message) {
  return {.kind = ReadEnd::Kind::kRefused, .status = status, .message = std::move(message)};
}

Connection::ReadEnd Connection::Failed(const error_code& error, std::string_view part) const {
  if (state_.stopping) return {};
  if (timed_out_) return Refused(408, "the request's " + std::string(part) + " took too long");
  if (error == http::error::body_limit) {
    return Refused(413, "the request body is larger than " +
                            std::to_string(state_.options.body_bytes_max) + " bytes");
  }
  if (error == http::error::header_limit) {
    return Refused(431, "the request header is larger than " +
                            std::to_string(state_.options.header_bytes_max) + " bytes");
  }
  if (error == http::error::end_of_stream || error == http::error::partial_message) return {};
  if (error.category() == http::make_error_code(http::error::bad_method).category()) {
    return Refused(400, "this is not an HTTP/1.1 request: " + error.message());
  }
  return {};
}

// Bodies being received are bounded together, not only one by one.
bool Connection::ReserveBody() {
  const auto length = parser_->content_length();
  const bool chunked = parser_->chunked();
  const uint64_t want = chunked ? state_.options.body_bytes_max : (length ? *length : 0);
  if (state_.bodies_bytes + want > state_.options.bodies_bytes_max) return false;
  state_.bodies_bytes += want;
  body_reserved_ = want;
  return true;
}

void Connection::ReleaseBody() { state_.bodies_bytes -= std::exchange(body_reserved_, 0); }

// Answering.

asio::awaitable<void> Connection::Answer() {
  exchange_ =
      std::make_shared<ExchangeQueue>(state_.options.stream_pending_bytes_max,
                                      [weak = weak_from_this(), executor = socket_.get_executor()] {
                                        asio::post(executor, [weak] {
                                          if (const auto self = weak.lock()) self->wake_.cancel();
                                        });
                                      });
  answering_ = true;
  stream_started_ = false;
  Watch();
  CallHandler();
  for (bool more = true; more;) {
    ExchangeQueue::Output output = exchange_->Take();
    if (gone_ || output.gone) {
      gone_ = true;
      break;
    }
    const bool ended = output.finished;
    const bool waiting = !ended && !output.stream_head && output.bytes.empty();
    if (waiting) {
      more = co_await WaitForMore();
    } else {
      const bool written = co_await SendNext(std::move(output));
      more = written && !ended;
    }
  }
  answering_ = false;
  exchange_->Detach();
  co_await StopWatching();
  Disarm();
}

asio::awaitable<bool> Connection::SendNext(ExchangeQueue::Output output) {
  std::string wire;
  if (output.response) {
    wire = SerializeResponse(*output.response, persistence_, body_part_);
  } else {
    if (output.stream_head) {
      if (framing_ == Framing::kUntilClose) persistence_ = Persistence::kClose;
      wire = SerializeStreamHead(*output.stream_head, persistence_, framing_);
      stream_started_ = true;
    }
    if (!output.bytes.empty()) AppendPiece(wire, output.bytes, framing_);
    if (output.finished) AppendLastPiece(wire, framing_);
  }
  const bool written = co_await WriteAll(std::move(wire));
  co_return written;
}

// False when the connection has ended meanwhile.
asio::awaitable<bool> Connection::WaitForMore() {
  if (stream_started_) {
    wake_.expires_after(Chrono(state_.options.keep_alive_every));
  } else {
    wake_.expires_at(asio::steady_timer::time_point::max());
  }
  auto [error] = co_await wake_.async_wait(kTuple);
  if (gone_) co_return false;
  if (error || !stream_started_) co_return true;  // Woken.
  std::string wire;
  AppendPiece(wire, exchange_->keep_alive(), framing_);
  const bool written = co_await WriteAll(std::move(wire));
  co_return written;
}

void Connection::CallHandler() {
  Request request = TakeRequest();
  try {
    state_.handler.Handle(std::move(request), exchange_);
  } catch (...) {
    state_.log.Error("http: the handler threw");
    exchange_->Respond(state_.handler.Refuse(500, "something went wrong inside the server"));
  }
  ReleaseBody();
}

Request Connection::TakeRequest() {
  auto message = parser_->release();
  Request request;
  request.method = std::string(message.method_string());
  const std::string target(message.target());
  request.path = target.substr(0, target.find_first_of("?#"));
  for (const auto& field : message) {
    request.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
  }
  request.body = std::move(message.body());
  return request;
}

// A refused client may still be sending. Closing now would reset the connection, and the reset can
// overtake the answer; so the rest is read and dropped, within bounds.
asio::awaitable<void> Connection::RefuseAndDrain(int status, std::string message) {
  timed_out_ = false;
  Response response = state_.handler.Refuse(status, message);
  std::string wire = SerializeResponse(response, Persistence::kClose, BodyPart::kSent);
  const bool written = co_await WriteAll(std::move(wire));
  if (!written) co_return;
  error_code ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  buffer_.clear();
  Arm(kDrainMax);
  for (uint64_t drained = 0; drained < kDrainBytesMax;) {
    auto [error, size] = co_await socket_.async_read_some(buffer_.prepare(16 * kReadBytes), kTuple);
    if (error) co_return;
    drained += size;
  }
}

asio::awaitable<bool> Connection::WriteAll(std::string bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    Arm(state_.options.write_stall_max);
    const auto rest = asio::buffer(bytes.data() + sent, bytes.size() - sent);
    auto [error, size] = co_await socket_.async_write_some(rest, kTuple);
    if (error || gone_) {
      OnGone();
      co_return false;
    }
    sent += size;
  }
  Disarm();
  co_return true;
}

// Watching.

void Connection::Watch() {
  if (buffer_.size() >= state_.options.pipelined_bytes_max) return;
  watching_ = true;
  socket_.async_read_some(
      buffer_.prepare(kReadBytes),
      asio::bind_cancellation_slot(
          watch_cancel_.slot(), [self = shared_from_this()](const error_code& error, size_t size) {
            self->OnWatched(error, size);
          }));
}

void Connection::OnWatched(const error_code& error, size_t size) {
  watching_ = false;
  if (!error) buffer_.commit(size);
  if (!answering_) {
    wake_.cancel();  // StopWatching waits.
  } else if (error) {
    OnGone();
  } else {
    Watch();
  }
}

asio::awaitable<void> Connection::StopWatching() {
  if (!watching_) co_return;
  watch_cancel_.emit(asio::cancellation_type::total);
  while (watching_) {
    wake_.expires_at(asio::steady_timer::time_point::max());
    co_await wake_.async_wait(kTuple);
  }
}

void Connection::OnGone() {
  gone_ = true;
  if (exchange_) exchange_->MarkGone();
  wake_.cancel();
}

// Deadlines.

void Connection::Arm(kv::Nanos span) {
  timed_out_ = false;
  const uint64_t generation = ++deadline_generation_;
  deadline_.expires_after(Chrono(span));
  deadline_.async_wait([weak = weak_from_this(), generation](const error_code& error) {
    const auto self = weak.lock();
    if (error || !self || self->deadline_generation_ != generation) return;
    self->timed_out_ = true;
    error_code ignored;
    self->socket_.cancel(ignored);
  });
}

void Connection::Disarm() {
  ++deadline_generation_;
  deadline_.cancel();
}

}  // namespace cairn::gateway
