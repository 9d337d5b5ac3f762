// Feeds configuration files. One that is accepted reads back from its own printed form, the same.
#include <cstdint>
#include <string_view>

#include "kvstore/base/check.h"
#include "kvstore/config/config_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cairn::kv;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  DaemonConfig config;
  const Status applied = ApplyToml(text, "fuzzed", config);
  if (!applied.ok()) {
    KV_CHECK(!applied.message().empty());
    return 0;
  }
  const std::string printed = ToToml(config);
  DaemonConfig again;
  const Status reread = ApplyToml(printed, "printed", again);
  KV_CHECK(reread.ok());
  KV_CHECK(ToToml(again) == printed);
  return 0;
}
