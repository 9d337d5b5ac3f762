// `cairn bench`: puts, gets and lookups of a running store, beside what its device can do alone.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <mutex>

#include "kvstore/base/random.h"
#include "kvstore/config/quantity.h"
#include "tools/cairn/device_limit.h"
#include "tools/cairn/format.h"
#include "tools/cairn/session.h"
#include "tools/cairn/store_verbs.h"
#include "tools/planner/table.h"

namespace cairn::tools {
namespace {

using kv::BlockId;
using kv::Code;
using kv::RemoteStore;
using kv::Result;
using kv::Status;

constexpr uint32_t kCallBlocks = 16;   // Of one put or get.
constexpr uint32_t kChainBlocks = 64;  // Of one lookup.

struct BenchFlags {
  std::string block_size = "1 MiB";
  std::string bytes = "512 MiB";
  std::string shape = "10+2";
  std::string device_dir;
  uint32_t depth = 4;
};

struct Figures {
  DeviceLimit device;
  bool device_known = false;
  double put = 0, get = 0;  // Bytes a second of payload.
  double lookup = 0;        // Ids a second.
  kv::Nanos lookup_p50, lookup_p99;
  double overhead = 1;  // Bytes written for each byte put.
};

// Calls in flight, at most `depth`; each has one slot of memory.
class Slots {
 public:
  explicit Slots(uint32_t depth) {
    for (uint32_t i = 0; i < depth; ++i) free_.push_back(i);
  }
  uint32_t Take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !free_.empty(); });
    const uint32_t slot = free_.back();
    free_.pop_back();
    ++taken_;
    return slot;
  }
  // From a callback.
  void Give(uint32_t slot, const Status& outcome) {
    const std::lock_guard lock(mutex_);
    if (!outcome.ok() && failure_.ok()) failure_ = outcome;
    free_.push_back(slot);
    --taken_;
    changed_.notify_all();
  }
  Status Drain() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return taken_ == 0; });
    return failure_;
  }
  bool failed() {
    const std::lock_guard lock(mutex_);
    return !failure_.ok();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<uint32_t> free_;  // Protected by mutex_, as are those below.
  uint32_t taken_ = 0;
  Status failure_;
};

class Bench {
 public:
  Bench(Session& session, kv::NamespaceId space, uint64_t block_size, uint64_t blocks,
        uint32_t depth)
      : session_(session),
        space_(space),
        block_size_(block_size),
        stride_(kv::AlignUp(block_size, kv::kSectorSize)),
        depth_(depth) {
    kv::Random random(static_cast<uint64_t>(::getpid()) + 1);
    for (uint64_t i = 0; i < blocks / kChainBlocks; ++i) {
      chains_.emplace_back();
      for (uint32_t j = 0; j < kChainBlocks; ++j) {
        const uint64_t high = random.Next();
        chains_.back().push_back(BlockId{{high, random.Next()}});
      }
    }
  }

  Status Prepare() {
    KV_ASSIGN_OR_RETURN(memory_, session_.remote().NewRegion(depth_ * kCallBlocks * stride_));
    kv::Random random(7);
    random.Fill(memory_);
    return Status();
  }

  // Bytes a second.
  Result<double> Puts() {
    return Timed([this](Slots& slots, uint32_t slot, const std::vector<BlockId>& chain,
                        uint32_t first) {
      kv::ChainPut put{.space = space_, .chain = chain, .first = first};
      for (uint32_t i = 0; i < kCallBlocks; ++i) {
        const kv::MutableByteSpan room = Room(slot, i).first(block_size_);
        Stamp(chain[first + i], room);
        put.blocks.push_back({.id = chain[first + i], .bytes = room});
      }
      session_.remote().client().Put(std::move(put), [&slots, slot](std::vector<Status> outcomes) {
        Status worst;
        for (const Status& outcome : outcomes) {
          if (!outcome.ok()) worst = outcome;
        }
        slots.Give(slot, worst);
      });
    });
  }

  Result<double> Gets() {
    std::reverse(chains_.begin(), chains_.end());
    return Timed([this](Slots& slots, uint32_t slot, const std::vector<BlockId>& chain,
                        uint32_t first) {
      std::vector<kv::BlockRead> reads;
      std::vector<BlockId> ids(chain.begin() + first, chain.begin() + first + kCallBlocks);
      for (uint32_t i = 0; i < kCallBlocks; ++i) {
        reads.push_back({.id = ids[i], .into = Room(slot, i)});
      }
      session_.remote().client().Get(
          space_, chain, std::move(reads), kv::Poller::Now() + kv::Seconds(60),
          [this, &slots, slot, ids](std::vector<kv::BlockReadResult> results) {
            slots.Give(slot, Check(slot, ids, results));
          });
    });
  }

  // One after another, as an engine asks before it admits a request.
  Status Lookups(Figures& figures) {
    std::vector<int64_t> nanos;
    const kv::Instant began = kv::Poller::Now();
    while (nanos.size() < 2000 && kv::Poller::Now() - began < kv::Seconds(5)) {
      const std::vector<BlockId>& chain = chains_[nanos.size() % chains_.size()];
      const kv::Instant before = kv::Poller::Now();
      KV_ASSIGN_OR_RETURN(const kv::ChainHit hit,
                          session_.Ask<Result<kv::ChainHit>>([&](RemoteStore& store) {
                            return store.Lookup(space_, chain, kv::LeaseOrder{});
                          }));
      if (hit.blocks != kChainBlocks) {
        return Status(Code::kNoSpace,
                      "blocks were evicted meanwhile: the store is too full to measure with so "
                      "many --bytes");
      }
      nanos.push_back((kv::Poller::Now() - before).value);
    }
    const kv::Nanos took = kv::Poller::Now() - began;
    figures.lookup = static_cast<double>(nanos.size() * kChainBlocks) * 1e9 /
                     static_cast<double>(took.value);
    std::sort(nanos.begin(), nanos.end());
    figures.lookup_p50 = {nanos[nanos.size() / 2]};
    figures.lookup_p99 = {nanos[(nanos.size() * 99) / 100]};
    return Status();
  }

 private:
  template <typename Call>
  Result<double> Timed(const Call& call) {
    Slots slots(depth_);
    const kv::Instant began = kv::Poller::Now();
    for (const std::vector<BlockId>& chain : chains_) {
      for (uint32_t first = 0; first < kChainBlocks && !slots.failed(); first += kCallBlocks) {
        const uint32_t slot = slots.Take();
        call(slots, slot, chain, first);
      }
    }
    KV_RETURN_IF_ERROR(slots.Drain());
    const kv::Nanos took = kv::Poller::Now() - began;
    return static_cast<double>(chains_.size() * kChainBlocks * block_size_) * 1e9 /
           static_cast<double>(took.value);
  }

  kv::MutableByteSpan Room(uint32_t slot, uint32_t i) {
    return memory_.subspan((uint64_t{slot} * kCallBlocks + i) * stride_, stride_);
  }
  // The id at both ends: a block in the wrong place, or half of one, is seen.
  void Stamp(BlockId id, kv::MutableByteSpan room) {
    std::memcpy(room.data(), &id.low, sizeof(id.low));
    std::memcpy(room.data() + block_size_ - sizeof(id.high), &id.high, sizeof(id.high));
  }
  Status Check(uint32_t slot, const std::vector<BlockId>& ids,
               const std::vector<kv::BlockReadResult>& results) {
    for (uint32_t i = 0; i < results.size(); ++i) {
      if (!results[i].status.ok()) return results[i].status;
      const kv::MutableByteSpan room = Room(slot, i);
      uint64_t low = 0, high = 0;
      std::memcpy(&low, room.data(), sizeof(low));
      std::memcpy(&high, room.data() + block_size_ - sizeof(high), sizeof(high));
      if (results[i].size != block_size_ || low != ids[i].low || high != ids[i].high) {
        return Status(Code::kCorrupt, "block " + ids[i].ToHex() + " came back wrong");
      }
    }
    return Status();
  }

  Session& session_;
  const kv::NamespaceId space_;
  const uint64_t block_size_;
  const uint64_t stride_;
  const uint32_t depth_;
  std::vector<std::vector<BlockId>> chains_;
  kv::MutableByteSpan memory_;
};

// The folder of the socket is the store's data folder, when it is the default one.
std::string DeviceDir(const BenchFlags& flags, const std::string& address) {
  constexpr std::string_view kUnix = "unix:";
  if (!flags.device_dir.empty() || !address.starts_with(kUnix)) return flags.device_dir;
  return address.substr(kUnix.size(), address.rfind('/') - kUnix.size());
}

std::string Rate(double bytes) { return kv::RoughBytes(bytes) + "/s"; }

double Ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

std::string RatioText(double part, double whole) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f", Ratio(part, whole));
  return whole > 0 ? text.data() : "-";
}

std::string Text(const Figures& figures) {
  Table table({"Figure", ">Store", ">Device alone", ">Ratio"});
  const auto device = [&](double rate) { return figures.device_known ? Rate(rate) : "-"; };
  const double writes = figures.device.write_bytes_per_second / figures.overhead;
  table.Add({"put, payload", Rate(figures.put), device(writes), RatioText(figures.put, writes)});
  table.Add({"get, payload", Rate(figures.get), device(figures.device.read_bytes_per_second),
             RatioText(figures.get, figures.device.read_bytes_per_second)});
  std::array<char, 48> ids{};
  std::snprintf(ids.data(), ids.size(), "%.0f ids/s", figures.lookup);
  table.Add({"lookup, chains of 64", ids.data(), "-", "-"});
  table.Add({"lookup, median", kv::RoughDuration(figures.lookup_p50), "-", "-"});
  table.Add({"lookup, p99", kv::RoughDuration(figures.lookup_p99), "-", "-"});
  return table.ToText() + "Puts are compared with the device's writes divided by " +
         RatioText(figures.overhead, 1) + ", the redundancy.\n" +
         (figures.device_known ? ""
                               : "The device was not measured: --device-dir FOLDER names it.\n");
}

Json ToJson(const Figures& figures) {
  const DeviceLimit& device = figures.device;
  return {{"put_bytes_per_second", figures.put},
          {"put_ratio", Ratio(figures.put * figures.overhead, device.write_bytes_per_second)},
          {"get_bytes_per_second", figures.get},
          {"get_ratio", Ratio(figures.get, device.read_bytes_per_second)},
          {"lookup_ids_per_second", figures.lookup},
          {"lookup_p50_nanos", figures.lookup_p50.value},
          {"lookup_p99_nanos", figures.lookup_p99.value},
          {"device_measured", figures.device_known},
          {"device_write_bytes_per_second", device.write_bytes_per_second},
          {"device_read_bytes_per_second", device.read_bytes_per_second},
          {"redundancy", figures.overhead}};
}

struct Sizes {
  uint64_t block = 0;
  uint64_t blocks = 0;
};

Result<Sizes> SizesOf(const BenchFlags& flags) {
  Sizes sizes;
  KV_ASSIGN_OR_RETURN(sizes.block, kv::ParseBytes(flags.block_size));
  KV_ASSIGN_OR_RETURN(const uint64_t bytes, kv::ParseBytes(flags.bytes));
  if (sizes.block < 16 || sizes.block > 4 * kv::kMiB) {
    return Status(Code::kInvalid, "--block-size: 16 B to 4 MiB");
  }
  sizes.blocks = bytes / sizes.block / kChainBlocks * kChainBlocks;
  if (sizes.blocks == 0) {
    return Status(Code::kInvalid, "--bytes: at least 64 blocks, " +
                                      kv::RoughBytes(static_cast<double>(64 * sizes.block)));
  }
  return sizes;
}

Status Measure(Invocation& invocation, const BenchFlags& flags, Session& session,
               kv::NamespaceId space, const Sizes& sizes, Figures& figures) {
  const std::string folder = DeviceDir(flags, session.address());
  if (!folder.empty()) {
    invocation.console.Progress("bench: the device alone");
    DeviceProbe probe{.folder = folder, .depth = flags.depth * 4};
    probe.unit = std::min<uint64_t>(kv::AlignUp(sizes.block, kv::kSectorSize), kv::kMiB);
    probe.bytes = probe.unit * std::max<uint64_t>(64, sizes.block * sizes.blocks / probe.unit);
    KV_ASSIGN_OR_RETURN(figures.device, MeasureDevice(probe));
    figures.device_known = true;
  }
  Bench bench(session, space, sizes.block, sizes.blocks, flags.depth);
  KV_RETURN_IF_ERROR(bench.Prepare());
  invocation.console.Progress("bench: puts");
  KV_ASSIGN_OR_RETURN(figures.put, bench.Puts());
  invocation.console.Progress("bench: gets");
  KV_ASSIGN_OR_RETURN(figures.get, bench.Gets());
  invocation.console.Progress("bench: lookups");
  return bench.Lookups(figures);
}

Status RunBench(Invocation& invocation, const BenchFlags& flags) {
  KV_ASSIGN_OR_RETURN(const Sizes sizes, SizesOf(flags));
  kv::NamespaceOptions options;
  options.name = "cairn-bench-" + std::to_string(::getpid());
  options.ttl_seconds = 3600;
  KV_RETURN_IF_ERROR(ParseShape(flags.shape, options));
  KV_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(invocation.options));
  KV_ASSIGN_OR_RETURN(const kv::NamespaceId space,
                      session->Ask<Result<kv::NamespaceId>>(
                          [&](RemoteStore& store) { return store.Attach(options); }));
  Figures figures;
  figures.overhead = 1.0 + static_cast<double>(options.parity_shards) / options.data_shards;
  const Status measured = Measure(invocation, flags, *session, space, sizes, figures);
  const Status removed = session->Ask<Status>(
      [&](RemoteStore& store) { return store.DeleteSpace(options.name); });
  KV_RETURN_IF_ERROR(measured);
  invocation.console.Write(invocation.console.json ? ToText(ToJson(figures)) : Text(figures));
  // A store that cannot delete the namespace lets it expire, in an hour.
  return removed.code() == Code::kNotFound ? Status() : removed;
}

}  // namespace

void AddBenchVerb(CLI::App& app, Invocation& invocation) {
  CLI::App* verb = app.add_subcommand(
      "bench", "measure puts, gets and lookups as ratios to what the device does alone");
  auto flags = std::make_shared<BenchFlags>();
  verb->add_option("--block-size", flags->block_size, "of a block, up to 4 MiB")
      ->type_name("BYTES")
      ->capture_default_str();
  verb->add_option("--bytes", flags->bytes, "to put and get; they are deleted at the end")
      ->type_name("BYTES")
      ->capture_default_str();
  verb->add_option("--shape", flags->shape, "data and parity shards of a stripe")
      ->type_name("K+M")
      ->capture_default_str();
  verb->add_option("--depth", flags->depth, "calls of 16 blocks in flight")
      ->check(CLI::Range(1, 64))
      ->type_name("COUNT")
      ->capture_default_str();
  verb->add_option("--device-dir", flags->device_dir,
                   "a folder on the store's device (default: that of its socket)")
      ->type_name("FOLDER");
  AddVerbOptions(*verb, invocation);
  OnVerb(*verb, invocation, flags, RunBench);
}

}  // namespace cairn::tools
