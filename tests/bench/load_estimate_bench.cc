// How often a lookup's estimate of load time is within a factor of two of the truth, while reads
// saturate the device.
//
//   load_estimate_bench [--quick] [--dir FOLDER] [--json FILE]
// Several callers in a closed loop: look a chain up, load a part of it (1 to 64 blocks of 256 KiB
// from its start), look again.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "kvstore/base/random.h"
#include "kvstore/node/embedded/embedded_node.h"

namespace cairn::bench {
namespace {

constexpr uint64_t kBlock = 256 * kv::kKiB;
constexpr size_t kChainBlocks = 64;

void Must(bool ok, const std::string& what) {
  if (ok) return;
  std::fprintf(stderr, "load_estimate_bench: %s\n", what.c_str());
  std::exit(1);
}

double Since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
}

struct Counts {
  std::atomic<uint64_t> loads{0};
  std::atomic<uint64_t> right{0};
  std::atomic<uint64_t> bytes{0};
};

class Chains {
 public:
  Chains(kv::Client& client, size_t count) : client_(client) {
    auto attached = kv::AttachAndWait(client_, {.name = "bench", .fingerprint = "bench"});
    Must(attached.ok(), attached.status().ToString());
    space_ = attached.value();
    kv::Random random(3);
    kv::Bytes source(kBlock * kChainBlocks);
    random.Fill(source.span());
    for (size_t i = 0; i < count; ++i) Put(random, source);
  }

  // One caller. The first quarter of its loads teaches the store, and does not count.
  void Load(uint64_t seed, int loads, Counts& counts) {
    kv::Random random(seed);
    kv::Bytes memory(kBlock * kChainBlocks);
    for (int load = 0; load < loads; ++load) {
      std::vector<kv::BlockId> chain = chains_[random.Below(chains_.size())];
      chain.resize(1 + random.Below(kChainBlocks));
      std::promise<kv::Nanos> estimated;
      client_.Lookup(space_, chain, [&](kv::Result<kv::ChainHit> hit) {
        Must(hit.ok() && hit.value().blocks == chain.size(), "a lookup misses");
        estimated.set_value(hit.value().load_estimate);
      });
      const auto estimate = static_cast<double>(estimated.get_future().get().value);
      std::vector<kv::BlockRead> reads;
      for (size_t i = 0; i < chain.size(); ++i) {
        reads.push_back({.id = chain[i], .into = memory.span().subspan(i * kBlock, kBlock)});
      }
      std::promise<bool> loaded;
      const auto begin = std::chrono::steady_clock::now();
      client_.Get(space_, chain, std::move(reads), kv::kNever,
                  [&](const std::vector<kv::BlockReadResult>& results) {
                    for (const auto& result : results) Must(result.status.ok(), "a get fails");
                    loaded.set_value(true);
                  });
      loaded.get_future().get();
      const double ratio = Since(begin) / estimate;
      counts.bytes += chain.size() * kBlock;
      if (load < loads / 4) continue;
      ++counts.loads;
      counts.right += ratio > 0.5 && ratio < 2.0 ? 1 : 0;
    }
  }

 private:
  void Put(kv::Random& random, const kv::Bytes& source) {
    kv::ChainPut put{.space = space_};
    for (size_t b = 0; b < kChainBlocks; ++b) {
      kv::BlockId id;
      id.high = random.Next();
      id.low = random.Next();
      put.chain.push_back(id);
      put.blocks.push_back({.id = id, .bytes = source.span().subspan(b * kBlock, kBlock)});
    }
    chains_.push_back(put.chain);
    std::promise<bool> done;
    client_.Put(std::move(put), [&](const std::vector<kv::Status>& statuses) {
      for (const kv::Status& status : statuses) Must(status.ok(), status.ToString());
      done.set_value(true);
    });
    done.get_future().get();
  }

  kv::Client& client_;
  kv::NamespaceId space_;
  std::vector<std::vector<kv::BlockId>> chains_;
};

int Main(bool quick, const std::string& folder, const std::string& json) {
  kv::NullLog log;
  kv::EmbeddedOptions options;
  options.data_dir = folder + "/load-estimate-bench." + std::to_string(getpid());
  options.target_bytes = 256 * kv::kMiB;
  std::string lines = "[";
  auto node = kv::EmbeddedNode::Start(options, log);
  Must(node.ok(), node.status().ToString());
  {
    Chains chains(node.value()->client(), quick ? 16 : 64);
    for (const size_t callers : {1u, 4u, 16u}) {
      Counts counts;
      const int loads = static_cast<int>((quick ? 320 : 1600) / callers) + 40;
      std::vector<std::thread> threads;
      const auto begin = std::chrono::steady_clock::now();
      for (size_t i = 0; i < callers; ++i) {
        threads.emplace_back([&, i] { chains.Load(i + 1, loads, counts); });
      }
      for (std::thread& thread : threads) thread.join();
      const double share =
          static_cast<double>(counts.right) / std::max(1.0, static_cast<double>(counts.loads));
      const double rate = static_cast<double>(counts.bytes) / Since(begin) * 1e3;
      const std::string name = "store.load_estimate." + std::to_string(callers);
      std::printf("%-24s %.3f of %llu loads within 2x, at %.0f MB/s\n", name.c_str(), share,
                  static_cast<unsigned long long>(counts.loads.load()), rate);
      char line[160];
      std::snprintf(line, sizeof(line), "%s{\"name\": \"%s\", \"value\": %.4f, "
                    "\"unit\": \"share\", \"baseline\": 0.9, \"ratio\": %.4f}",
                    lines.size() > 1 ? ", " : "", name.c_str(), share, share / 0.9);
      lines += line;
    }
  }
  const kv::Status stopped = node.value()->Stop();
  Must(stopped.ok(), stopped.ToString());
  std::filesystem::remove_all(options.data_dir);
  if (!json.empty()) std::ofstream(json) << lines << "]\n";
  return 0;
}

}  // namespace
}  // namespace cairn::bench

int main(int count, char** arguments) {
  bool quick = false;
  std::string folder = ".";
  std::string json;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    if (argument == "--quick") {
      quick = true;
    } else if (argument == "--json" && i + 1 < count) {
      json = arguments[++i];
    } else if (argument == "--dir" && i + 1 < count) {
      folder = arguments[++i];
    } else {
      std::fprintf(stderr, "usage: load_estimate_bench [--quick] [--dir FOLDER] [--json FILE]\n");
      return 2;
    }
  }
  return cairn::bench::Main(quick, folder, json);
}
