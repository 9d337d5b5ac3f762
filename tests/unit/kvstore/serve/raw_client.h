// A client by hand: sends any frame, and looks at what comes back.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kvstore/lane/lane.h"
#include "kvstore/os/socket_address.h"
#include "kvstore/wire/messages.h"
#include "tests/unit/kvstore/serve/served_store.h"

namespace cairn::kv {

class RawClient {
 public:
  RawClient(ServedStore& served, const std::string& address) : served_(served) {
    SocketAddress parsed = SocketAddress::Parse(address).value();
    const int socket = parsed.NewSocket().value();
    KV_CHECK(connect(socket, &parsed.address(), parsed.size()) == 0);
    lane_ = std::make_unique<Lane>(served.poller(), socket);
    sending_ = lane_->SendFrames();
  }
  ~RawClient() { Leave(); }
  // As a process that was killed: the kernel closes its sockets.
  void Leave() {
    if (lane_ == nullptr) return;
    lane_->Close();
    served_.Await(std::move(sending_));
    for (Task<bool>& task : sent_) (void)served_.Await(std::move(task));
    lane_.reset();
  }

  // --- Sending; the frame is on its way when the loop runs ---
  void SendBytes(std::vector<uint8_t> bytes) {
    Lane::Outgoing outgoing{.frame = std::move(bytes)};
    sent_.push_back(lane_->Send(std::move(outgoing)));
  }
  void Send(wire::FrameHeader header, const std::vector<uint8_t>& body,
            std::vector<ByteSpan> payload = {}, int descriptor = -1) {
    for (const ByteSpan part : payload) header.payload_size += part.size();
    Lane::Outgoing outgoing{.frame = wire::EncodeFrame(header, body),
                            .payload = std::move(payload),
                            .descriptor = descriptor};
    sent_.push_back(lane_->Send(std::move(outgoing)));
  }
  template <typename Message>
  uint64_t Ask(wire::Verb verb, const Message& message, int descriptor = -1,
               int64_t budget_nanos = 0) {
    const wire::FrameHeader header{
        .verb = verb, .request_id = ++requests_, .budget_nanos = budget_nanos};
    Send(header, wire::Encode(message).value(), {}, descriptor);
    return requests_;
  }

  // --- Receiving ---
  struct Answer {
    Received received = Received::kEnded;
    wire::FrameHeader header = {};
    std::vector<uint8_t> body = {};
    std::vector<uint8_t> payload = {};
  };
  Answer Receive() { return served_.Await(ReceiveOne()); }
  template <typename Value>
  Result<Value> Take() {
    const Answer answer = Receive();
    if (answer.received != Received::kOk) return Status(Code::kUnavailable, "the stream ended");
    return std::move(*wire::ParseAnswer<Value>(answer.body));
  }
  template <typename Value, typename Message>
  Result<Value> Call(wire::Verb verb, const Message& message, int descriptor = -1) {
    Ask(verb, message, descriptor);
    return Take<Value>();
  }

  wire::HelloAnswer Hello() {
    return Call<wire::HelloAnswer>(wire::Verb::kHello, wire::HelloRequest{.name = "raw"}).value();
  }
  Result<wire::HelloAnswer> Join(const Id128& session) {
    const wire::HelloRequest hello{.lane = wire::LaneKind::kData, .session = session};
    return Call<wire::HelloAnswer>(wire::Verb::kHello, hello);
  }
  NamespaceId Attach() {
    const NamespaceOptions options{.name = "tests", .fingerprint = "f", .run_blocks = 8};
    return Call<NamespaceId>(wire::Verb::kAttach, options).value();
  }
  Status Register(uint32_t region, int descriptor, uint64_t size) {
    const wire::RegisterRequest request{.region = region, .size = size};
    return Call<wire::Empty>(wire::Verb::kRegister, request, descriptor).status();
  }

 private:
  Task<Answer> ReceiveOne() {
    Answer answer;
    answer.received = co_await lane_->ReceiveHeader(answer.header);
    if (answer.received != Received::kOk) co_return answer;
    answer.received = co_await lane_->ReceiveBody(answer.body);
    if (answer.received != Received::kOk || answer.header.payload_size == 0) co_return answer;
    answer.payload.resize(answer.header.payload_size);
    std::vector<MutableByteSpan> into{MutableByteSpan(answer.payload)};
    answer.received = co_await lane_->ReceivePayload(std::move(into));
    co_return answer;
  }

  ServedStore& served_;
  std::unique_ptr<Lane> lane_;
  Task<void> sending_;
  std::vector<Task<bool>> sent_;
  uint64_t requests_ = 0;
};

}  // namespace cairn::kv
