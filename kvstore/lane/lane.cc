// Header and body, each checked as soon as it is whole.
#include "kvstore/lane/lane.h"

#include <utility>

namespace cairn::kv {

Task<Received> Lane::ReceiveHeader(wire::FrameHeader& header) {
  stream_.ExpectFrame();
  std::vector<MutableByteSpan> into{MutableByteSpan(header_)};
  const Received received = co_await stream_.Fill(std::move(into));
  if (received != Received::kOk) co_return received;
  const Result<wire::FrameHeader> parsed = wire::ParseFrameHeader(header_);
  if (!parsed.ok()) co_return Received::kMalformed;
  header = parsed.value();
  body_size_ = header.body_size;
  co_return Received::kOk;
}

Task<Received> Lane::ReceiveBody(std::vector<uint8_t>& body) {
  body.resize(body_size_);
  std::vector<MutableByteSpan> into{MutableByteSpan(body)};
  const Received received = co_await stream_.Fill(std::move(into));
  if (received != Received::kOk) co_return received;
  co_return wire::BodyFits(header_, body) ? Received::kOk : Received::kMalformed;
}

}  // namespace cairn::kv
