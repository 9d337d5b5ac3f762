// Measures the store through another process's ways in: shared memory and TCP, in interleaved
// rounds against what bounds them: the device, a bare socket, one core's memcpy.
//
//   serve_bench [--quick] [--dir FOLDER] [--json FILE]
// The server has a thread of its own, and so has the client.
#include <fcntl.h>
#include <liburing.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "kvstore/base/random.h"
#include "kvstore/node/embedded/embedded_node.h"
#include "kvstore/remote/remote_client.h"
#include "kvstore/serve/server.h"
#include "tests/bench/bench_options.h"
#include "tests/bench/socket_figures.h"

namespace cairn::bench {
namespace {

using kv::ByteSpan;
using kv::Bytes;
using kv::kMiB;
using kv::MutableByteSpan;

// --- What bounds it -----------------------------------------------------------------------------

// Seconds to read each of `offsets` of a file directly, `unit` bytes, `depth` at a time.
double ReadDevice(const std::string& path, uint64_t unit, const std::vector<uint64_t>& offsets,
                  uint32_t depth) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECT);
  Must(fd >= 0, path + ": cannot be opened for direct I/O");
  io_uring ring{};
  Must(io_uring_queue_init(depth * 2, &ring, 0) == 0, "io_uring is not permitted here");
  std::vector<Bytes> buffers;
  for (uint32_t i = 0; i < depth; ++i) buffers.emplace_back(unit);
  const auto begin = std::chrono::steady_clock::now();
  size_t next = 0;
  const auto submit = [&](uint64_t slot) {
    io_uring_sqe* entry = io_uring_get_sqe(&ring);
    io_uring_prep_read(entry, fd, buffers[slot].data(), static_cast<unsigned>(unit),
                       offsets[next++]);
    io_uring_sqe_set_data64(entry, slot);
    io_uring_submit(&ring);
  };
  for (uint32_t slot = 0; slot < depth && next < offsets.size(); ++slot) submit(slot);
  for (size_t done = 0; done < offsets.size(); ++done) {
    io_uring_cqe* completion = nullptr;
    Must(io_uring_wait_cqe(&ring, &completion) == 0, "io_uring_wait_cqe failed");
    Must(completion->res == static_cast<int>(unit), "the device gave a short read");
    const uint64_t slot = io_uring_cqe_get_data64(completion);
    io_uring_cqe_seen(&ring, completion);
    if (next < offsets.size()) submit(slot);
  }
  const double seconds = Since(begin);
  io_uring_queue_exit(&ring);
  close(fd);
  return seconds;
}

double CopyInMemory(uint64_t unit, size_t count) {
  Bytes source(unit * 16);
  Bytes target(unit * 16);
  const auto begin = std::chrono::steady_clock::now();
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(target.data() + (i % 16) * unit, source.data() + (i * 7 % 16) * unit, unit);
    asm volatile("" : : "r"(target.data()) : "memory");
  }
  return Since(begin);
}

// --- The store ----------------------------------------------------------------------------------

class ServerBeside final : public kv::EmbeddedService {
 public:
  explicit ServerBeside(std::string unix_path) : unix_path_(std::move(unix_path)) {}
  kv::Status Start(const Parts& parts) override {
    kv::ServerOptions options;
    options.unix_path = unix_path_;
    options.tcp_address = "127.0.0.1:0";
    const kv::ServerParts server{.poller = parts.poller,
                                 .clock = parts.clock,
                                 .log = log_,
                                 .store = parts.node.store(),
                                 .sessions = parts.node.striped()};
    auto started = kv::Server::Start(server, options);
    if (!started.ok()) return started.status();
    server_ = std::move(started).value();
    port_ = server_->tcp_port();
    return {};
  }
  kv::Task<void> Stop() override { return server_->Stop(); }
  std::string tcp_address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  const std::string unix_path_;
  kv::NullLog log_;
  std::unique_ptr<kv::Server> server_;
  uint16_t port_ = 0;
};

// Blocks of one size, and gets of them by one client into memory of its own.
class Blocks {
 public:
  Blocks(kv::RemoteClient& remote, uint64_t unit, size_t count, size_t depth)
      : remote_(remote), unit_(unit), depth_(depth) {
    kv::NamespaceOptions options;
    options.name = "bench-" + std::to_string(unit);
    options.fingerprint = "bench";
    options.run_blocks = 16;
    auto space = kv::AttachAndWait(remote.client(), options);
    Must(space.ok(), "attach failed");
    space_ = space.value();
    auto region = remote.NewRegion(unit * depth);
    Must(region.ok(), region.status().ToString());
    region_ = region.value();
    kv::Random random(unit);
    for (size_t i = 0; i < count; ++i) chain_.push_back({{unit, i + 1}});
  }
  void Put() {
    kv::Random random(unit_);
    random.Fill(region_);
    for (size_t first = 0; first < chain_.size(); first += depth_) {
      const size_t end = std::min(chain_.size(), first + depth_);
      const auto stored = remote_.Ask<std::vector<kv::Status>>([&](kv::RemoteStore& store) {
        kv::ChainPut put{.space = space_, .chain = chain_, .first = static_cast<uint32_t>(first)};
        for (size_t i = first; i < end; ++i) {
          kv::BlockWrite& block = put.blocks.emplace_back();
          block.id = chain_[i];
          block.bytes = region_.subspan((i - first) * unit_, unit_);
        }
        return store.Put(std::move(put));
      });
      for (const kv::Status& status : stored) Must(status.ok(), "put: " + status.ToString());
    }
  }
  // Seconds for a get of each block in this order, `depth` at a time.
  double Get(kv::RemoteClient& remote, const std::vector<size_t>& order, MutableByteSpan into) {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<size_t> free;
    for (size_t i = 0; i < depth_; ++i) free.push_back(i);
    const auto begin = std::chrono::steady_clock::now();
    for (const size_t block : order) {
      size_t slot = 0;
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return !free.empty(); });
        slot = free.back();
        free.pop_back();
      }
      std::vector<kv::BlockRead> reads(1);
      reads[0].id = chain_[block];
      reads[0].into = into.subspan(slot * unit_, unit_);
      // A chain of its run is enough.
      const size_t run = block / 16 * 16;
      std::vector<kv::BlockId> chain(chain_.begin() + static_cast<ptrdiff_t>(run),
                                     chain_.begin() + static_cast<ptrdiff_t>(block + 1));
      remote.client().Get(space_, std::move(chain), std::move(reads),
                          kv::Poller::Now() + kv::Seconds(60),
                          [&, slot](const std::vector<kv::BlockReadResult>& results) {
                            Must(results[0].status.ok(), results[0].status.ToString());
                            const std::lock_guard lock(mutex);
                            free.push_back(slot);
                            changed.notify_one();
                          });
    }
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return free.size() == depth_; });
    return Since(begin);
  }
  MutableByteSpan region() const { return region_; }
  size_t count() const { return chain_.size(); }
  double megabytes(size_t blocks) const {
    return static_cast<double>(blocks) * static_cast<double>(unit_) / 1e6;
  }

 private:
  kv::RemoteClient& remote_;
  const uint64_t unit_;
  const size_t depth_;
  kv::NamespaceId space_;
  MutableByteSpan region_;
  std::vector<kv::BlockId> chain_;
};

std::vector<size_t> Shuffled(size_t count, uint64_t seed) {
  std::vector<size_t> order(count);
  for (size_t i = 0; i < count; ++i) order[i] = i;
  kv::Random random(seed);
  for (size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
  return order;
}

class Bench {
 public:
  Bench(const Options& options, std::string folder) : options_(options), folder_(folder) {}

  std::vector<Figure> Run() {
    kv::NullLog log;
    ServerBeside server(folder_ + "/socket");
    kv::EmbeddedOptions store;
    store.data_dir = folder_ + "/data";
    store.target_bytes = 512 * kMiB;
    store.node.store.cache.bytes_max = 128 * kMiB;
    auto node = kv::EmbeddedNode::Start(store, log, &server);
    Must(node.ok(), node.status().ToString());
    kv::RemoteOptions local;
    local.address = "unix:" + folder_ + "/socket";
    auto shared = kv::RemoteClient::Connect(local, {}, log);
    Must(shared.ok(), shared.status().ToString());
    kv::RemoteOptions far;
    far.address = server.tcp_address();
    auto tcp = kv::RemoteClient::Connect(far, {}, log);
    Must(tcp.ok(), tcp.status().ToString());
    MakeDevice();
    std::vector<Figure> figures;
    figures.push_back(Cold(*shared.value(), "store.get_shm.256KiB", 256 * kv::kKiB, 16));
    figures.push_back(Cold(*shared.value(), "store.get_shm.4MiB", 4 * kMiB, 8));
    Hot(*shared.value(), *tcp.value(), figures);
    tcp.value()->Stop();
    shared.value()->Stop();
    const kv::Status stopped = node.value()->Stop();
    Must(stopped.ok(), stopped.ToString());
    return figures;
  }

 private:
  uint64_t Total() const { return (options_.quick ? 256 : 1024) * kMiB; }
  int Rounds() const { return options_.quick ? 4 : 8; }

  void MakeDevice() {
    device_ = folder_ + "/device";
    const int fd = open(device_.c_str(), O_WRONLY | O_CREAT | O_DIRECT, 0600);
    Must(fd >= 0, "no device file");
    Bytes chunk(4 * kMiB);
    for (uint64_t at = 0; at < Total(); at += chunk.size()) {
      Must(pwrite(fd, chunk.data(), chunk.size(), static_cast<off_t>(at)) ==
               static_cast<ssize_t>(chunk.size()),
           "the device file cannot be written");
    }
    close(fd);
  }

  Figure Cold(kv::RemoteClient& remote, const std::string& name, uint64_t unit, size_t depth) {
    Blocks blocks(remote, unit, Total() / unit, depth);
    blocks.Put();
    const std::vector<size_t> order = Shuffled(blocks.count(), 7);
    std::vector<uint64_t> offsets;
    for (const size_t block : order) offsets.push_back(block * unit);
    std::vector<double> store;
    std::vector<double> bare;
    for (int round = 0; round < Rounds(); ++round) {
      const double device = ReadDevice(device_, unit, offsets, static_cast<uint32_t>(depth));
      const double seconds = blocks.Get(remote, order, blocks.region());
      if (round == 0) continue;  // Brings both into the same cache state.
      bare.push_back(blocks.megabytes(order.size()) / device);
      store.push_back(blocks.megabytes(order.size()) / seconds);
    }
    return {name, Median(store), Median(bare), "device"};
  }

  // A few blocks, again and again: they are in the server's memory.
  void Hot(kv::RemoteClient& shared, kv::RemoteClient& tcp, std::vector<Figure>& figures) {
    constexpr uint64_t kUnit = 4 * kMiB - 4096;  // Another namespace than the cold ones.
    constexpr size_t kDepth = 4;
    Blocks blocks(shared, kUnit, 8, kDepth);
    blocks.Put();
    std::vector<size_t> order;
    for (size_t i = 0; i < (options_.quick ? 100 : 400); ++i) order.push_back(i % 8);
    kv::NamespaceOptions options;
    options.name = "bench-" + std::to_string(kUnit);
    options.fingerprint = "bench";
    options.run_blocks = 16;
    Must(kv::AttachAndWait(tcp.client(), options).ok(), "attach failed");
    Bytes into(kUnit * kDepth);
    std::vector<double> by_shm, by_tcp, socket, copy;
    for (int round = 0; round < Rounds(); ++round) {
      const double megabytes = blocks.megabytes(order.size());
      const double a = blocks.Get(shared, order, blocks.region());
      const double b = blocks.Get(tcp, order, into.span());
      const double c = CopyThroughSocket(kUnit, order.size());
      const double d = CopyInMemory(kUnit, order.size());
      if (round == 0) continue;
      by_shm.push_back(megabytes / a);
      by_tcp.push_back(megabytes / b);
      socket.push_back(megabytes / c);
      copy.push_back(megabytes / d);
    }
    figures.push_back({"store.get_hot_shm.4MiB", Median(by_shm), Median(copy), "memcpy"});
    figures.push_back({"store.get_tcp.4MiB", Median(by_tcp), Median(socket), "bare socket"});
  }

  const Options options_;
  const std::string folder_;
  std::string device_;
};

}  // namespace
}  // namespace cairn::bench

int main(int count, char** arguments) {
  cairn::bench::Options options = cairn::bench::ParseOptions(count, arguments);
  const std::string folder = options.folder + "/serve-bench." + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  const std::vector<cairn::bench::Figure> figures = cairn::bench::Bench(options, folder).Run();
  std::filesystem::remove_all(folder);
  cairn::bench::Report(figures, options.json);
  return 0;
}
