// As many coroutines as operations in flight, each taking the next place of one list.
#include "tools/cairn/device_limit.h"

#include <unistd.h>

#include <filesystem>
#include <vector>

#include "kvstore/async/gate.h"
#include "kvstore/base/random.h"
#include "kvstore/os/file_disk.h"

namespace cairn::tools {
namespace {

using kv::Result;
using kv::Status;
using kv::Task;

enum class Direction { kWrite, kRead };

struct Pass {
  Direction direction;
  std::vector<uint64_t> offsets;
  size_t next = 0;
  Status failure = {};
};

Task<void> Work(kv::Disk& disk, Pass& pass, uint64_t unit) {
  kv::Bytes buffer(unit);
  while (pass.next < pass.offsets.size() && pass.failure.ok()) {
    const uint64_t offset = pass.offsets[pass.next++];
    Status done;
    if (pass.direction == Direction::kWrite) {
      done = co_await disk.Write(offset, buffer.span());
    } else {
      done = co_await disk.Read(offset, buffer.span());
    }
    if (!done.ok()) pass.failure = done;
  }
}

Result<double> Run(kv::Poller& poller, kv::Disk& disk, Pass& pass, const DeviceProbe& probe) {
  kv::Gate gate(poller.loop());
  const kv::Instant began = kv::Poller::Now();
  for (uint32_t i = 0; i < probe.depth; ++i) gate.Hold(Work(disk, pass, probe.unit));
  poller.Await(gate.Close());
  if (pass.direction == Direction::kWrite && pass.failure.ok()) {
    pass.failure = poller.Await(disk.Sync());
  }
  const kv::Nanos took = kv::Poller::Now() - began;
  if (!pass.failure.ok()) return pass.failure;
  return static_cast<double>(pass.offsets.size() * probe.unit) * 1e9 /
         static_cast<double>(took.value);
}

Result<DeviceLimit> Measure(const DeviceProbe& probe, const std::string& path) {
  kv::Loop loop;
  kv::NullLog log;
  KV_ASSIGN_OR_RETURN(const std::unique_ptr<kv::Poller> poller,
                      kv::Poller::Create(loop, log, kv::PollerOptions{}));
  const kv::FileDiskOptions options{.path = path, .size = probe.bytes};
  KV_ASSIGN_OR_RETURN(const std::unique_ptr<kv::FileDisk> disk,
                      kv::FileDisk::Open(*poller, log, options));
  Pass writes{.direction = Direction::kWrite, .offsets = {}};
  for (uint64_t at = 0; at < probe.bytes; at += probe.unit) writes.offsets.push_back(at);
  Pass reads{.direction = Direction::kRead, .offsets = writes.offsets};
  kv::Random random(1);
  for (size_t i = reads.offsets.size(); i > 1; --i) {
    std::swap(reads.offsets[i - 1], reads.offsets[random.Below(i)]);
  }
  DeviceLimit limit;
  KV_ASSIGN_OR_RETURN(limit.write_bytes_per_second, Run(*poller, *disk, writes, probe));
  KV_ASSIGN_OR_RETURN(limit.read_bytes_per_second, Run(*poller, *disk, reads, probe));
  return limit;
}

}  // namespace

Result<DeviceLimit> MeasureDevice(const DeviceProbe& probe) {
  const std::string path = probe.folder + "/cairn-bench-" + std::to_string(::getpid());
  auto limit = Measure(probe, path);
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  return limit;
}

}  // namespace cairn::tools
