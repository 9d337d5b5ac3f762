// A server that does what a test says: answers too late, wrongly, or not at all.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kvstore/async/gate.h"
#include "kvstore/lane/lane.h"
#include "kvstore/os/shared_memory.h"
#include "kvstore/os/socket_address.h"
#include "kvstore/wire/messages.h"
#include "tests/unit/kvstore/serve/served_store.h"

namespace cairn::kv {

class ScriptedServer {
 public:
  struct Request {
    Lane* lane = nullptr;
    wire::FrameHeader header = {};
    std::vector<uint8_t> body = {};
  };
  // What is asked besides hello, ping, register and attach comes here. False: the lane is closed.
  using Script = std::function<bool(ScriptedServer&, const Request&)>;

  ScriptedServer(ServedStore& served, Script script)
      : served_(served), script_(std::move(script)), tasks_(served.loop()) {
    listener_ = SocketAddress::Parse(address()).value().Listen().value();
    tasks_.Hold(Accept());
  }
  ~ScriptedServer() {
    shutdown(listener_, SHUT_RDWR);
    for (Lane* lane : lanes_) lane->Close();
    served_.Await(tasks_.Close());
  }
  std::string address() const { return "unix:" + served_.folder().File("scripted"); }

  void Answer(const Request& request, const std::vector<uint8_t>& body,
              std::vector<uint8_t> payload = {}) {
    wire::FrameHeader header{.verb = request.header.verb,
                             .direction = wire::Direction::kAnswer,
                             .payload_size = payload.size(),
                             .request_id = request.header.request_id};
    std::vector<uint8_t> frame = wire::EncodeFrame(header, body);
    frame.insert(frame.end(), payload.begin(), payload.end());
    tasks_.Hold(SendAll(*request.lane, std::move(frame)));
  }

  bool mute = false;  // Not even hellos and pings are answered.
  int64_t session_timeout_nanos = Seconds(60).value;
  std::vector<std::unique_ptr<SharedMemory>> regions;
  std::vector<Request> kept;  // For scripts.

 private:
  Task<void> SendAll(Lane& lane, std::vector<uint8_t> frame) {
    Lane::Outgoing outgoing{.frame = std::move(frame)};
    (void)co_await lane.Send(std::move(outgoing));
  }
  Task<void> Accept() {
    while (true) {
      const int64_t socket = co_await served_.poller().Accept(listener_);
      if (socket < 0) break;
      tasks_.Hold(Serve(static_cast<int>(socket)));
    }
    served_.poller().Close(listener_);
  }
  Task<void> Serve(int socket) {
    auto lane = std::make_unique<Lane>(served_.poller(), socket);
    Lane& open = *lane;
    lanes_.push_back(&open);
    Task<void> sending = open.SendFrames();
    while (true) {
      Request request{.lane = &open};
      Received received = co_await open.ReceiveHeader(request.header);
      if (received == Received::kOk) received = co_await open.ReceiveBody(request.body);
      if (received == Received::kOk) {
        received = co_await open.SkipPayload(request.header.payload_size);
      }
      if (received != Received::kOk || !Act(open, request)) break;
    }
    open.Close();
    co_await sending;
    std::erase(lanes_, &open);
    closed_.push_back(std::move(lane));  // Answers may still be on their way out of the test.
  }
  bool Act(Lane& lane, const Request& request) {
    if (mute) return true;
    switch (request.header.verb) {
      case wire::Verb::kHello:
        Answer(request, wire::EncodeAnswer(Result<wire::HelloAnswer>(
                            wire::HelloAnswer{.features = wire::kFeatures,
                                              .session = {1, 2},
                                              .requests_max = 100,
                                              .session_bytes_max = 128 * kMiB,
                                              .regions_max = 10,
                                              .region_bytes_max = kGiB,
                                              .session_timeout_nanos = session_timeout_nanos})));
        return true;
      case wire::Verb::kRegister: {
        const auto parsed = wire::Parse<wire::RegisterRequest>(request.body);
        auto memory = SharedMemory::Adopt(lane.TakeDescriptor(), parsed.value().size);
        regions.push_back(std::move(memory).value());
        break;
      }
      case wire::Verb::kAttach:
        Answer(request, wire::EncodeAnswer(Result<NamespaceId>(NamespaceId{})));
        return true;
      case wire::Verb::kPing:
      case wire::Verb::kUnregister:
        break;
      default:
        return script_(*this, request);
    }
    Answer(request, wire::EncodeAnswer(Result<wire::Empty>(wire::Empty{})));
    return true;
  }

  ServedStore& served_;
  Script script_;
  int listener_ = -1;
  std::vector<Lane*> lanes_;
  std::vector<std::unique_ptr<Lane>> closed_;
  Gate tasks_;
};

}  // namespace cairn::kv
