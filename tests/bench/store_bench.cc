// Measures the store through its client against the device under it, in interleaved rounds.
//
//   store_bench [--quick] [--dir FOLDER] [--json FILE] [--only NAME]
// The device is a plain loop of O_DIRECT io_uring reads or writes: the same sizes, the same depth,
// a file on the same file system. The files of both have been written before: the first write to a
// part of a file that is only allocated costs the file system half of the device's rate.
#include <fcntl.h>
#include <liburing.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "kvstore/base/random.h"
#include "kvstore/node/embedded/data_dir.h"
#include "kvstore/node/embedded/embedded_node.h"
#include "tests/bench/bench_options.h"

namespace cairn::bench {
namespace {

using kv::ByteSpan;
using kv::Bytes;
using kv::kGiB;
using kv::kMiB;

struct Figure {
  std::string name;
  double value = 0;     // MB/s of the store.
  double baseline = 0;  // MB/s of what it is compared with.
  const char* against = "device";
  double p99 = 0;                // Microseconds; 0: not measured.
  double p99_baseline = 0;
  double cpu_seconds_per_gb = 0;  // Of the whole process; 0: not measured.
};

double Since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double P99(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) * 99 / 100];
}

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void Must(bool ok, const std::string& what) {
  if (ok) return;
  std::fprintf(stderr, "store_bench: %s\n", what.c_str());
  std::exit(1);
}

// The file that stands for the device.
class Device {
 public:
  Device(const std::string& path, uint64_t size, uint32_t depth)
      : path_(path), size_(size), depth_(depth) {
    fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_DIRECT, 0600);
    Must(fd_ >= 0, path + ": cannot be opened for direct I/O");
    Must(posix_fallocate(fd_, 0, static_cast<off_t>(size)) == 0, path + ": no space");
    Must(io_uring_queue_init(depth * 2, &ring_, 0) == 0, "io_uring is not permitted here");
  }
  ~Device() {
    io_uring_queue_exit(&ring_);
    close(fd_);
    std::filesystem::remove(path_);
  }

  // Seconds for one operation at each of `offsets`, `unit` bytes, `depth` in flight.
  double Run(bool writes, uint64_t unit, const std::vector<uint64_t>& offsets) {
    std::vector<Bytes> buffers;
    for (uint32_t i = 0; i < depth_; ++i) buffers.emplace_back(unit);
    const auto begin = std::chrono::steady_clock::now();
    size_t next = 0;
    size_t done = 0;
    const auto submit = [&](uint64_t slot) {
      io_uring_sqe* entry = io_uring_get_sqe(&ring_);
      uint8_t* memory = buffers[slot].data();
      const auto length = static_cast<unsigned>(unit);
      if (writes) {
        io_uring_prep_write(entry, fd_, memory, length, offsets[next++]);
      } else {
        io_uring_prep_read(entry, fd_, memory, length, offsets[next++]);
      }
      io_uring_sqe_set_data64(entry, slot);
      io_uring_submit(&ring_);
    };
    for (uint32_t slot = 0; slot < depth_ && next < offsets.size(); ++slot) submit(slot);
    while (done < offsets.size()) {
      io_uring_cqe* completion = nullptr;
      Must(io_uring_wait_cqe(&ring_, &completion) == 0, "io_uring_wait_cqe failed");
      Must(completion->res == static_cast<int>(unit), "the device gave a short operation");
      const uint64_t slot = io_uring_cqe_get_data64(completion);
      io_uring_cqe_seen(&ring_, completion);
      ++done;
      if (next < offsets.size()) submit(slot);
    }
    return Since(begin);
  }

  std::vector<uint64_t> Offsets(uint64_t unit) const {
    std::vector<uint64_t> offsets;
    for (uint64_t at = 0; at + unit <= size_; at += unit) offsets.push_back(at);
    return offsets;
  }

 private:
  const std::string path_;
  const uint64_t size_;
  const uint32_t depth_;
  int fd_ = -1;
  io_uring ring_{};
};

// Keeps `depth` calls of `start(i, done)` in flight until `count` are done. Any thread calls done.
void KeepInFlight(size_t count, size_t depth,
                  const std::function<void(size_t, std::function<void()>)>& start) {
  std::mutex mutex;
  std::condition_variable changed;
  size_t running = 0;
  for (size_t i = 0; i < count; ++i) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return running < depth; });
    ++running;
    lock.unlock();
    start(i, [&] {
      const std::lock_guard done_lock(mutex);
      --running;
      changed.notify_one();
    });
  }
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return running == 0; });
}

// One size of block in a namespace of its own: chains of blocks, put and read through the client.
class Blocks {
 public:
  Blocks(kv::EmbeddedNode& node, uint64_t block_bytes, uint64_t total, uint32_t per_put)
      : block_bytes_(block_bytes), per_put_(per_put), random_(block_bytes) {
    Attach(node);
    source_ = Bytes(block_bytes * per_put);
    random_.Fill(source_.span());
    chain_.resize(total / block_bytes);
    Renew();
  }

  // From now on through this node: the same one as before, or the same data opened again.
  void Attach(kv::EmbeddedNode& node) {
    client_ = &node.client();
    kv::NamespaceOptions space;
    space.name = "bench-" + std::to_string(block_bytes_);
    space.fingerprint = "bench";
    auto attached = kv::AttachAndWait(*client_, space);
    Must(attached.ok(), "attach failed");
    space_ = attached.value();
  }

  // New ids, so that the next put stores again.
  void Renew() {
    for (kv::BlockId& id : chain_) {
      id.high = random_.Next();
      id.low = random_.Next();
    }
  }

  double Put(size_t depth) {
    const auto begin = std::chrono::steady_clock::now();
    KeepInFlight(chain_.size() / per_put_, depth, [&](size_t i, std::function<void()> done) {
      kv::ChainPut put;
      put.space = space_;
      put.chain = Group(i);
      for (size_t b = 0; b < per_put_; ++b) {
        const ByteSpan all = std::as_const(source_).span();
        put.blocks.push_back({put.chain[b], all.subspan(b * block_bytes_, block_bytes_)});
      }
      client_->Put(std::move(put), [done](const std::vector<kv::Status>& statuses) {
        for (const kv::Status& status : statuses) Must(status.ok(), "put: " + status.ToString());
        done();
      });
    });
    return Since(begin);
  }

  // `per_get` neighbours by each Get, in random order, verified by the client as always. The time
  // of each goes to `micros`.
  double Get(size_t depth, uint32_t per_get = 1, std::vector<double>* micros = nullptr) {
    std::vector<Bytes> buffers;
    std::vector<size_t> free;
    for (size_t i = 0; i < depth; ++i) {
      buffers.emplace_back(block_bytes_ * per_get);
      free.push_back(i);
    }
    std::vector<size_t> order(chain_.size() / per_get);
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_.Below(i)]);
    std::mutex mutex;
    const auto begin = std::chrono::steady_clock::now();
    KeepInFlight(order.size(), depth, [&](size_t i, std::function<void()> done) {
      const size_t first = order[i] * per_get;
      size_t slot = 0;
      {
        const std::lock_guard lock(mutex);
        slot = free.back();
        free.pop_back();
      }
      const kv::Instant asked = kv::Poller::Now();
      const kv::Instant deadline = asked + kv::Seconds(60);
      std::vector<kv::BlockRead> reads;
      for (uint32_t b = 0; b < per_get; ++b) {
        const kv::MutableByteSpan into = buffers[slot].span();
        reads.push_back({chain_[first + b], into.subspan(b * block_bytes_, block_bytes_)});
      }
      client_->Get(space_, Group(first / per_put_), std::move(reads), deadline,
                  [&, slot, asked, done](const std::vector<kv::BlockReadResult>& results) {
                    for (const kv::BlockReadResult& result : results) {
                      Must(result.status.ok(), "get: " + result.status.ToString());
                    }
                    {
                      const std::lock_guard lock(mutex);
                      free.push_back(slot);
                      const kv::Nanos took = kv::Poller::Now() - asked;
                      if (micros) micros->push_back(static_cast<double>(took.value) / 1e3);
                    }
                    done();
                  });
    });
    return Since(begin);
  }

  double megabytes() const {
    return static_cast<double>(chain_.size()) * static_cast<double>(block_bytes_) / 1e6;
  }

 private:
  // Every put is a chain of its own: one run, led by its first block.
  std::vector<kv::BlockId> Group(size_t i) const {
    const auto first = chain_.begin() + static_cast<std::ptrdiff_t>(i * per_put_);
    return {first, first + per_put_};
  }

  kv::Client* client_ = nullptr;
  const uint64_t block_bytes_;
  const uint32_t per_put_;
  kv::Random random_;
  kv::NamespaceId space_;
  Bytes source_;
  std::vector<kv::BlockId> chain_;
};

Figure MeasureGet(kv::EmbeddedNode& node, Device& device, const Options& options,
                  const std::string& name, uint64_t block_bytes, uint32_t per_put, size_t depth) {
  const uint64_t total = options.quick ? 256 * kMiB : kGiB;
  Blocks blocks(node, block_bytes, total, per_put);
  blocks.Put(2);
  std::vector<uint64_t> offsets = device.Offsets(block_bytes);
  offsets.resize(std::min<size_t>(offsets.size(), total / block_bytes));
  kv::Random random(7);
  for (size_t i = offsets.size(); i > 1; --i) std::swap(offsets[i - 1], offsets[random.Below(i)]);
  std::vector<double> store;
  std::vector<double> bare;
  std::vector<double> cpu;
  for (int round = 0; round < (options.quick ? 4 : 8); ++round) {
    const double device_seconds = device.Run(false, block_bytes, offsets);
    const double cpu_before = CpuSeconds();
    const double store_seconds = blocks.Get(depth);
    if (round == 0) continue;  // Brings both into the same cache state.
    cpu.push_back((CpuSeconds() - cpu_before) * 1e3 / blocks.megabytes());
    bare.push_back(blocks.megabytes() / device_seconds);
    store.push_back(blocks.megabytes() / store_seconds);
  }
  return {.name = name,
          .value = Median(store),
          .baseline = Median(bare),
          .cpu_seconds_per_gb = Median(cpu)};
}

kv::EmbeddedOptions StoreOptions(const Options& options, const std::string& folder) {
  kv::EmbeddedOptions store;
  store.data_dir = folder;
  store.target_bytes = options.quick ? 256 * kMiB : kGiB;
  store.node.store.cache.bytes_max = 0;  // Cold is cold.
  store.node.repair.automatic = false;   // What is lost stays lost.
  return store;
}

// Targets that have been written from end to end, as those of a store that has run for a while.
void WriteTargets(const kv::EmbeddedOptions& store) {
  const Bytes zeroes(4 * kMiB);
  for (uint32_t i = 0; i < store.targets; ++i) {
    const std::string folder = store.data_dir + "/" + kv::DataDir::TargetLabel(i);
    std::filesystem::create_directories(folder);
    const std::string path = folder + "/segments";
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_DIRECT, 0600);
    Must(fd >= 0, path + ": cannot be opened for direct I/O");
    for (uint64_t at = 0; at < store.target_bytes; at += zeroes.size()) {
      const ssize_t put = pwrite(fd, zeroes.data(), zeroes.size(), static_cast<off_t>(at));
      Must(put == static_cast<ssize_t>(zeroes.size()), path + ": cannot be written");
    }
    close(fd);
  }
}

// The same blocks with all targets there, and with two of them replaced by empty ones.
Figure MeasureDegraded(const Options& options, const std::string& folder, const std::string& name,
                       uint64_t block_bytes, uint32_t per_put, uint32_t per_get) {
  const size_t depth = per_get == 1 ? 16 : 4;
  const std::string data = folder + "/degraded";
  const kv::EmbeddedOptions store = StoreOptions(options, data);
  const int rounds = options.quick ? 4 : 8;
  kv::NullLog log;
  auto node = kv::EmbeddedNode::Start(store, log);
  Must(node.ok(), node.status().ToString());
  Blocks blocks(*node.value(), block_bytes, 256 * kMiB, per_put);
  blocks.Put(2);
  const auto measure = [&](std::vector<double>& micros) {
    std::vector<double> rates;
    for (int round = 0; round < rounds; ++round) {
      std::vector<double> took;
      rates.push_back(blocks.megabytes() / blocks.Get(depth, per_get, &took));
      if (round > 0) micros.insert(micros.end(), took.begin(), took.end());
    }
    rates.erase(rates.begin());
    return Median(rates);
  };
  std::vector<double> whole_micros;
  const double whole = measure(whole_micros);
  Must(node.value()->Stop().ok(), "stop failed");
  for (const char* target : {"/target-00", "/target-01"}) {
    Must(std::filesystem::remove_all(data + target) > 0, "there is no target to lose");
  }
  node = kv::EmbeddedNode::Start(store, log);
  Must(node.ok(), node.status().ToString());
  blocks.Attach(*node.value());
  std::vector<double> micros;
  const double degraded = measure(micros);
  Must(node.value()->stats().degraded_reads > 0, "no read was degraded");
  Must(node.value()->Stop().ok(), "stop failed");
  std::filesystem::remove_all(data);
  return {.name = name,
          .value = degraded,
          .baseline = whole,
          .against = "healthy",
          .p99 = P99(micros),
          .p99_baseline = P99(whole_micros)};
}

// A few blocks that fit into the cache, against one core that copies as many bytes.
Figure MeasureHot(const Options& options, const std::string& folder) {
  const uint64_t block_bytes = 4 * kMiB;
  const std::string data = folder + "/hot";
  kv::EmbeddedOptions store = StoreOptions(options, data);
  store.node.store.cache.bytes_max = 64 * kMiB;
  kv::NullLog log;
  auto node = kv::EmbeddedNode::Start(store, log);
  Must(node.ok(), node.status().ToString());
  Blocks blocks(*node.value(), block_bytes, 32 * kMiB, 1);
  blocks.Put(2);
  for (int sight = 0; sight < 3; ++sight) blocks.Get(1);
  Bytes from(32 * kMiB);
  std::vector<Bytes> into;
  for (int i = 0; i < 2; ++i) into.emplace_back(block_bytes);
  std::vector<double> hot;
  std::vector<double> copied;
  for (int round = 0; round < (options.quick ? 20 : 60); ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (uint64_t at = 0; at < from.size(); at += block_bytes) {
      std::memcpy(into[at / block_bytes % 2].data(), from.data() + at, block_bytes);
    }
    copied.push_back(static_cast<double>(from.size()) / 1e6 / Since(begin));
    hot.push_back(blocks.megabytes() / blocks.Get(2));
  }
  Must(node.value()->stats().cache_misses <= 24, "the blocks are not in memory");
  Must(node.value()->Stop().ok(), "stop failed");
  std::filesystem::remove_all(data);
  return {.name = "store.get_hot.4MiB",
          .value = Median(hot),
          .baseline = Median(copied),
          .against = "memcpy"};
}

Figure MeasurePut(kv::EmbeddedNode& node, Device& device, const Options& options) {
  const uint64_t block_bytes = 4 * kMiB;
  const uint64_t total = options.quick ? 256 * kMiB : 512 * kMiB;
  Blocks blocks(node, block_bytes, total, 1);
  std::vector<uint64_t> offsets = device.Offsets(block_bytes);
  offsets.resize(std::min<size_t>(offsets.size(), total / block_bytes));
  std::vector<double> store;
  std::vector<double> bare;
  std::vector<double> cpu;
  for (int round = 0; round < (options.quick ? 4 : 8); ++round) {
    blocks.Renew();
    const double device_seconds = device.Run(true, block_bytes, offsets);
    const double cpu_before = CpuSeconds();
    const double store_seconds = blocks.Put(8);
    if (round == 0) continue;
    cpu.push_back((CpuSeconds() - cpu_before) * 1e3 / blocks.megabytes());
    bare.push_back(blocks.megabytes() / device_seconds);
    store.push_back(blocks.megabytes() / store_seconds);
  }
  return {.name = "store.put.4MiB",
          .value = Median(store),
          .baseline = Median(bare),
          .cpu_seconds_per_gb = Median(cpu)};
}

void Report(const std::vector<Figure>& figures, const std::string& path) {
  std::string json = "[";
  for (const Figure& figure : figures) {
    const double ratio = figure.value / figure.baseline;
    std::printf("%-32s %8.0f MB/s, %s %8.0f MB/s, ratio %.2f", figure.name.c_str(), figure.value,
                figure.against, figure.baseline, ratio);
    if (figure.p99 > 0) {
      std::printf(", p99 %.0f us against %.0f", figure.p99, figure.p99_baseline);
    }
    if (figure.cpu_seconds_per_gb > 0) {
      std::printf(", %.2f s of CPU a GB", figure.cpu_seconds_per_gb);
    }
    std::printf("\n");
    char line[512];
    std::snprintf(line, sizeof(line),
                  "%s{\"name\": \"%s\", \"value\": %.1f, \"unit\": \"MB/s\", \"baseline\": %.1f, "
                  "\"ratio\": %.4f, \"p99_us\": %.0f, \"p99_us_baseline\": %.0f, "
                  "\"cpu_seconds_per_gb\": %.3f}",
                  json.size() > 1 ? ", " : "", figure.name.c_str(), figure.value, figure.baseline,
                  ratio, figure.p99, figure.p99_baseline, figure.cpu_seconds_per_gb);
    json += line;
  }
  if (!path.empty()) std::ofstream(path) << json << "]\n";
}

std::vector<Figure> MeasureWhole(const Options& options, const std::string& folder) {
  const kv::EmbeddedOptions store = StoreOptions(options, folder + "/data");
  WriteTargets(store);
  kv::NullLog log;
  auto started = kv::EmbeddedNode::Start(store, log);
  Must(started.ok(), started.status().ToString());
  kv::EmbeddedNode& node = *started.value();
  Device device(folder + "/device", kGiB, 16);
  device.Run(true, 4 * kMiB, device.Offsets(4 * kMiB));
  std::vector<Figure> figures;
  const auto get = [&](const std::string& name, uint64_t block_bytes, uint32_t per_put) {
    if (!options.Wants(name)) return;
    figures.push_back(MeasureGet(node, device, options, name, block_bytes, per_put, 16));
  };
  get("store.get.256KiB", 256 * kv::kKiB, 16);
  get("store.get.4MiB", 4 * kMiB, 1);
  if (options.Wants("store.put.4MiB")) figures.push_back(MeasurePut(node, device, options));
  const kv::Status stopped = node.Stop();
  Must(stopped.ok(), stopped.ToString());
  std::filesystem::remove_all(store.data_dir);
  return figures;
}

int Main(const Options& options) {
  const std::string folder = options.folder + "/store-bench." + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  std::vector<Figure> figures = MeasureWhole(options, folder);
  const auto degraded = [&](const std::string& name, uint64_t block_bytes, uint32_t per_put,
                            uint32_t per_get) {
    if (!options.Wants(name)) return;
    figures.push_back(MeasureDegraded(options, folder, name, block_bytes, per_put, per_get));
  };
  degraded("store.get_degraded.256KiB", 256 * kv::kKiB, 16, 1);
  degraded("store.get_degraded.256KiB_by_16", 256 * kv::kKiB, 16, 16);
  degraded("store.get_degraded.4MiB", 4 * kMiB, 1, 1);
  if (options.Wants("store.get_hot.4MiB")) figures.push_back(MeasureHot(options, folder));
  std::filesystem::remove_all(folder);
  Report(figures, options.json);
  return 0;
}

}  // namespace
}  // namespace cairn::bench

int main(int count, char** arguments) {
  cairn::bench::Options options = cairn::bench::ParseOptions(count, arguments);
  return cairn::bench::Main(options);
}
