// Appends each request to the disk, round and round.
#include "tests/sim/echo_service.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kvstore/base/checksum.h"

namespace cairn::sim {

void EchoService::Start() {
  network_.Serve([this](kv::NodeId, kv::Bytes request, kv::Bytes) {
    return Answer(std::move(request));
  });
}

kv::Task<kv::Network::Reply> EchoService::Answer(kv::Bytes request) {
  ++served_;
  const uint64_t size = request.capacity();
  if (tail_ + size > disk_.size()) tail_ = 0;
  const uint64_t offset = std::exchange(tail_, tail_ + size);
  kv::Status status = co_await disk_.Write(offset, std::as_const(request).sectors());
  if (status.ok()) status = co_await disk_.Sync();
  uint64_t digest = 0;
  co_await workers_.Run([&] { digest = kv::Checksum(request.span()); });
  kv::Bytes answer(1 + sizeof(digest));
  answer.data()[0] = static_cast<uint8_t>(status.code());
  std::memcpy(answer.data() + 1, &digest, sizeof(digest));
  co_return kv::Network::Reply(std::move(answer));
}

}  // namespace cairn::sim
