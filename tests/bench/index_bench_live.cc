// A store with bytes in it: lookups while reads saturate the device, and a start without metadata.
#include <fcntl.h>
#include <liburing.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <optional>

#include "kvstore/base/random.h"
#include "kvstore/node/embedded/embedded_node.h"
#include "tests/bench/index_bench.h"

namespace cairn::bench {
namespace {

using kv::Bytes;
using kv::kKiB;
using kv::kMiB;

constexpr uint64_t kBlockBytes = 256 * kKiB;
constexpr size_t kPerPut = 16;
constexpr size_t kChain = 128;
constexpr size_t kReadsInFlight = 16;

// Chains of 128 blocks.
struct Chains {
  kv::NamespaceId space;
  std::vector<std::vector<kv::BlockId>> ids;
  uint64_t bytes() const { return ids.size() * kChain * kBlockBytes; }
};

// Calls and waits.
template <typename T>
class Answer {
 public:
  void Give(T value) {
    const std::lock_guard lock(mutex_);
    value_.emplace(std::move(value));
    given_.notify_one();
  }
  T Wait() {
    std::unique_lock lock(mutex_);
    given_.wait(lock, [this] { return value_.has_value(); });
    return std::move(*value_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable given_;
  std::optional<T> value_;
};

Chains Fill(kv::Client& client, uint64_t bytes) {
  Chains chains;
  kv::NamespaceOptions space;
  space.name = "live";
  space.fingerprint = "bench";
  chains.space = kv::AttachAndWait(client, space).value();
  kv::Random random(3);
  Bytes source(kPerPut * kBlockBytes);
  random.Fill(source.span());
  while (chains.bytes() < bytes) {
    std::vector<kv::BlockId>& chain = chains.ids.emplace_back(kChain);
    for (kv::BlockId& id : chain) {
      id.high = random.Next();
      id.low = random.Next();
    }
    for (size_t first = 0; first < kChain; first += kPerPut) {
      kv::ChainPut put;
      put.space = chains.space;
      put.chain = chain;
      put.first = static_cast<uint32_t>(first);
      for (size_t b = 0; b < kPerPut; ++b) {
        const kv::ByteSpan all = std::as_const(source).span();
        put.blocks.push_back({chain[first + b], all.subspan(b * kBlockBytes, kBlockBytes)});
      }
      Answer<std::vector<kv::Status>> answer;
      client.Put(std::move(put), [&](std::vector<kv::Status> done) {
        answer.Give(std::move(done));
      });
      for (const kv::Status& status : answer.Wait()) Must(status);
    }
  }
  return chains;
}

// Reads blocks, 16 gets in flight, until it is stopped.
class Readers {
 public:
  Readers(kv::Client& client, const Chains& chains) : client_(client), chains_(chains) {
    for (size_t i = 0; i < kReadsInFlight; ++i) buffers_.emplace_back(kBlockBytes);
    running_ = kReadsInFlight;
    for (size_t i = 0; i < kReadsInFlight; ++i) Next(i, i * 7919);
  }
  // Bytes read.
  uint64_t Stop() {
    stop_ = true;
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return running_ == 0; });
    return blocks_ * kBlockBytes;
  }

 private:
  void Next(size_t slot, uint64_t turn) {
    if (stop_) {
      const std::lock_guard lock(mutex_);
      if (--running_ == 0) ended_.notify_one();
      return;
    }
    const std::vector<kv::BlockId>& chain = chains_.ids[turn % chains_.ids.size()];
    const size_t block = turn / chains_.ids.size() % kChain;
    const kv::Instant deadline = kv::Poller::Now() + kv::Seconds(60);
    client_.Get(chains_.space, chain, {{chain[block], buffers_[slot].span()}}, deadline,
                [this, slot, turn](const std::vector<kv::BlockReadResult>& results) {
                  Must(results[0].status);
                  ++blocks_;
                  Next(slot, turn + 104'729);
                });
  }

  kv::Client& client_;
  const Chains& chains_;
  std::vector<Bytes> buffers_;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> blocks_{0};
  std::mutex mutex_;
  std::condition_variable ended_;
  size_t running_ = 0;
};

// Microseconds that one lookup of 128 ids takes its caller, all of them.
std::vector<double> Lookups(kv::Client& client, const Chains& chains, double seconds) {
  std::vector<double> micros;
  const auto begin = std::chrono::steady_clock::now();
  for (size_t i = 0; Since(begin) < seconds; ++i) {
    std::vector<kv::BlockId> chain = chains.ids[i * 31 % chains.ids.size()];
    Answer<uint32_t> answer;
    const auto asked = std::chrono::steady_clock::now();
    client.Lookup(chains.space, std::move(chain), [&](const kv::Result<kv::ChainHit>& hit) {
      answer.Give(hit.ok() ? hit.value().blocks : 0);
    });
    Must(answer.Wait() == kChain, "a lookup does not find its whole chain");
    micros.push_back(Since(asked) * 1e6);
  }
  std::sort(micros.begin(), micros.end());
  return micros;
}

// MB/s of reading `bytes` of the files from their start: 24 reads of 2 MiB in flight, O_DIRECT.
double DeviceRate(const std::vector<std::string>& files, uint64_t bytes) {
  constexpr uint64_t kUnit = 2 * kMiB;
  constexpr uint32_t kDepth = 24;
  io_uring ring{};
  Must(io_uring_queue_init(kDepth, &ring, 0) == 0, "io_uring is not permitted here");
  std::vector<int> handles;
  for (const std::string& file : files) {
    handles.push_back(open(file.c_str(), O_RDONLY | O_DIRECT));
    Must(handles.back() >= 0, file + ": cannot be opened for direct I/O");
  }
  std::vector<Bytes> buffers;
  for (uint32_t i = 0; i < kDepth; ++i) buffers.emplace_back(kUnit);
  const uint64_t count = bytes / kUnit;
  uint64_t next = 0;
  const auto begin = std::chrono::steady_clock::now();
  const auto submit = [&](uint64_t slot) {
    io_uring_sqe* entry = io_uring_get_sqe(&ring);
    const int fd = handles[next % handles.size()];
    io_uring_prep_read(entry, fd, buffers[slot].data(), kUnit, next / handles.size() * kUnit);
    io_uring_sqe_set_data64(entry, slot);
    ++next;
    io_uring_submit(&ring);
  };
  for (uint64_t slot = 0; slot < std::min<uint64_t>(kDepth, count); ++slot) submit(slot);
  for (uint64_t done = 0; done < count; ++done) {
    io_uring_cqe* completion = nullptr;
    Must(io_uring_wait_cqe(&ring, &completion) == 0, "io_uring_wait_cqe failed");
    Must(completion->res == static_cast<int>(kUnit), "the device gave a short read");
    const uint64_t slot = io_uring_cqe_get_data64(completion);
    io_uring_cqe_seen(&ring, completion);
    if (next < count) submit(slot);
  }
  const double seconds = Since(begin);
  io_uring_queue_exit(&ring);
  for (const int fd : handles) close(fd);
  return static_cast<double>(count * kUnit) / seconds / 1e6;
}

}  // namespace

std::vector<Figure> MeasureLiveStore(const Options& options) {
  kv::NullLog log;
  kv::EmbeddedOptions store;
  store.data_dir = options.folder + "/live";
  store.target_bytes = options.quick ? 128 * kMiB : 256 * kMiB;
  const uint64_t bytes = options.quick ? 512 * kMiB : kv::kGiB;
  auto node = kv::EmbeddedNode::Start(store, log);
  Must(node.status());
  const Chains chains = Fill(node.value()->client(), bytes);
  std::vector<double> busy;
  double read_rate = 0;
  {
    Readers readers(node.value()->client(), chains);
    const auto begin = std::chrono::steady_clock::now();
    (void)Lookups(node.value()->client(), chains, 1);  // Warms the runs.
    busy = Lookups(node.value()->client(), chains, options.quick ? 3 : 10);
    read_rate = static_cast<double>(readers.Stop()) / Since(begin) / 1e6;
  }
  const uint64_t appended = node.value()->stats().bytes_appended;
  Must(node.value()->Stop());
  node.value().reset();

  std::vector<std::string> files;
  for (uint32_t i = 0; i < store.targets; ++i) {
    char name[32];
    std::snprintf(name, sizeof(name), "/target-%02u", i);
    std::filesystem::remove_all(store.data_dir + name + "/index");
    files.push_back(store.data_dir + name + "/segments");
  }
  (void)DeviceRate(files, appended);
  const double device = DeviceRate(files, appended);
  const auto begin = std::chrono::steady_clock::now();
  auto again = kv::EmbeddedNode::Start(store, log);
  const double seconds = Since(begin);
  Must(again.status());
  // Namespaces are metadata, too: attached anew, under the same id.
  kv::NamespaceOptions space;
  space.name = "live";
  space.fingerprint = "bench";
  Must(kv::AttachAndWait(again.value()->client(), space).status());
  (void)Lookups(again.value()->client(), chains, 0.1);
  Must(again.value()->Stop());
  std::printf("%zu lookups beside reads of %.0f MB/s: p50 %.0f us, p99 %.0f us, most %.0f us\n",
              busy.size(), read_rate, busy[busy.size() / 2], busy[busy.size() * 99 / 100],
              busy.back());
  return {{"store.lookup_p99", busy[busy.size() * 99 / 100], "us", 1000, "the aim"},
          {"store.rescan", static_cast<double>(appended) / seconds / 1e6, "MB/s", device,
           "the device"}};
}

}  // namespace cairn::bench
