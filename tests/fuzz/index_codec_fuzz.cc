// Feeds the keys and records that an index reads from its database.
//
// What decodes must mean the same when it is encoded and decoded again.
#include <cstdint>
#include <string_view>

#include "kvstore/base/check.h"
#include "kvstore/index/index_codec.h"

namespace cairn::kv {
namespace {

void TryRecord(std::string_view input) {
  const auto record = DecodeRecord(input);
  if (!record.ok()) return;
  const std::string encoded = EncodeRecord(record.value());
  const auto again = DecodeRecord(encoded);
  KV_CHECK(again.ok() && again.value() == record.value());
}

void TryUse(std::string_view input) {
  const auto use = DecodeUse(input);
  if (use.ok()) KV_CHECK(EncodeUse(use.value()) == input);
}

void TrySpace(std::string_view input) {
  const auto space = DecodeSpace(input);
  if (!space.ok()) return;
  const std::string encoded = EncodeSpace(space.value());
  const auto again = DecodeSpace(encoded);
  KV_CHECK(again.ok() && again.value() == space.value());
}

void TryKey(std::string_view input) {
  const auto stripe = StripeOfKey(input);
  if (!stripe) return;
  KV_CHECK(StateKey(*stripe) == input || UseKey(*stripe) == input || RemovalKey(*stripe) == input);
}

}  // namespace
}  // namespace cairn::kv

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 4 == 0) cairn::kv::TryRecord(rest);
  if (data[0] % 4 == 1) cairn::kv::TryUse(rest);
  if (data[0] % 4 == 2) cairn::kv::TrySpace(rest);
  if (data[0] % 4 == 3) cairn::kv::TryKey(rest);
  return 0;
}
