// Feeds trace files of every format, plain and gzip. The first byte chooses the options.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "kvstore/base/check.h"
#include "tools/trace/trace_source.h"

namespace cairn::tools {
namespace {

constexpr uint64_t kRequestsMax = 20'000;

void Read(const std::string& path, uint8_t choice) {
  TraceOptions options;
  options.format = static_cast<TraceFormat>(choice % 5);
  if ((choice & 0x40) != 0) options.broken_lines = BrokenLines::kRefuse;
  if ((choice & 0x80) != 0) options.block_tokens = 512;
  const auto source = OpenTrace(path, options);
  if (!source.ok()) return;
  Request request;
  for (uint64_t i = 0; i < kRequestsMax; ++i) {
    const auto more = source.value()->Next(request);
    if (!more.ok() || !more.value()) return;
  }
}

}  // namespace
}  // namespace cairn::tools

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const int file = memfd_create("trace", 0);
  KV_CHECK(file >= 0);
  KV_CHECK(write(file, data + 1, size - 1) == static_cast<ssize_t>(size - 1));
  cairn::tools::Read(std::string("/proc/self/fd/").append(std::to_string(file)), data[0]);
  close(file);
  return 0;
}
