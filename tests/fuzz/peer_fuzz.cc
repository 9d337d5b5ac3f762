// Feeds what a node may send another: hellos, heads, and the message of each verb.
//
// What parses as a hello must encode to the same bytes.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kvstore/base/check.h"
#include "kvstore/os/tcp_hello.h"
#include "kvstore/peer/peer_messages.h"

namespace cairn::kv {
namespace {

void TryHello(ByteSpan input) {
  OfferBytes offered{};
  std::memcpy(offered.data(), input.data(), std::min(input.size(), offered.size()));
  const auto offer = ParseOffer(offered);
  if (offer.ok()) KV_CHECK(EncodeOffer(offer.value()) == offered);
  WelcomeBytes answered{};
  std::memcpy(answered.data(), input.data(), std::min(input.size(), answered.size()));
  const auto welcome = ParseWelcome(answered);
  if (welcome.ok()) KV_CHECK(EncodeWelcome(welcome.value()) == answered);
}

void TryRequest(ByteSpan input) {
  const auto parsed = peer::ParseRequest(input);
  if (parsed.ok()) (void)peer::ParseAny(parsed.value().first, parsed.value().second);
}

// The verb alone, so that all are reached.
void TryMessage(ByteSpan input) {
  if (!input.empty()) {
    const peer::RequestHead head{.version = static_cast<uint16_t>(1 + input[0] / 40 % 2),
                                 .verb = static_cast<peer::Verb>(input[0] % 40)};
    (void)peer::ParseAny(head, input.subspan(1));
  }
}

void TryAnswer(ByteSpan input) {
  const auto parsed = peer::ParseAnswerHead(input);
  if (!parsed.ok()) return;
  const ByteSpan fields = parsed.value().second;
  (void)peer::ParseAnswer<peer::Nothing>(fields);
  (void)peer::ParseAnswer<peer::MapSize>(fields);
  (void)peer::ParseAnswer<peer::SpacePage>(fields);
  (void)peer::ParseAnswer<StripeName>(fields);
  (void)peer::ParseAnswer<std::vector<Status>>(fields);
  (void)peer::ParseAnswer<std::vector<IndexedStripe>>(fields);
  (void)peer::ParseAnswer<std::vector<TargetPort::Filed>>(fields);
}

}  // namespace
}  // namespace cairn::kv

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const cairn::kv::ByteSpan rest(data + 1, size - 1);
  if (data[0] % 4 == 0) cairn::kv::TryHello(rest);
  if (data[0] % 4 == 1) cairn::kv::TryRequest(rest);
  if (data[0] % 4 == 2) cairn::kv::TryMessage(rest);
  if (data[0] % 4 == 3) cairn::kv::TryAnswer(rest);
  return 0;
}
