// Puts blocks for ever and says which are acknowledged, or checks those of a list.
//
// usage: store_driver put DIR SEED FIRST COUNT   one line "ack N" for each acknowledged block
//        store_driver check DIR SEED             reads numbers from stdin; "ok N", "missing N CODE"
//                                                or "WRONG N"; then "degraded D corrupt C"
//        store_driver reversion FILE 0           makes the superblocks whole ones of version 99
// Exit codes: 0 done, 1 wrong bytes, 3 the store does not start (its message goes to stderr).
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <future>
#include <string>

#include "kvstore/base/checksum.h"
#include "kvstore/base/random.h"
#include "kvstore/node/embedded/embedded_node.h"

namespace cairn::kv {
namespace {

constexpr size_t kInFlight = 8;
constexpr uint64_t kChainBlocks = 32;

class StderrLog final : public Log {
 public:
  void Write(LogLevel level, std::string_view message) override {
    if (level < LogLevel::kInfo) return;
    std::fprintf(stderr, "%.*s\n", static_cast<int>(message.size()), message.data());
  }
};

// Block n belongs to chain n / 32; its bytes follow from n and the seed.
BlockId IdOf(uint64_t seed, uint64_t n) {
  Random random(seed * 1'000'003 + n);
  BlockId id;
  id.high = random.Next();
  id.low = random.Next();
  return id;
}
std::vector<BlockId> ChainOf(uint64_t seed, uint64_t n) {
  std::vector<BlockId> chain;
  for (uint64_t i = n - n % kChainBlocks; i <= n; ++i) chain.push_back(IdOf(seed, i));
  return chain;
}
Bytes BytesOf(uint64_t seed, uint64_t n) {
  Random random(seed * 7 + n);
  const uint64_t kind = random.Below(10);
  const uint64_t size = 1 + random.Below(kind < 5 ? 8'000 : kind < 9 ? 200'000 : 1'500'000);
  Bytes bytes(size);
  random.Fill(bytes.span());
  return bytes;
}

struct Putting {
  uint64_t n = 0;
  Bytes bytes;
  std::promise<std::vector<Status>> done;
};

void Settle(Putting& putting) {
  const auto outcomes = putting.done.get_future().get();
  if (outcomes[0].ok()) {
    std::printf("ack %" PRIu64 "\n", putting.n);
  } else {
    std::printf("refused %" PRIu64 " %s\n", putting.n, outcomes[0].ToString().c_str());
  }
  std::fflush(stdout);
}

int Put(EmbeddedNode& node, NamespaceId space, uint64_t seed, uint64_t first, uint64_t count) {
  std::deque<Putting> in_flight;
  for (uint64_t n = first; n < first + count; ++n) {
    if (in_flight.size() >= kInFlight) {
      Settle(in_flight.front());
      in_flight.pop_front();
    }
    Putting& putting = in_flight.emplace_back();
    putting.n = n;
    putting.bytes = BytesOf(seed, n);
    ChainPut put{.space = space, .chain = ChainOf(seed, n)};
    put.first = static_cast<uint32_t>(n % kChainBlocks);
    put.blocks = {{put.chain.back(), putting.bytes.span()}};
    node.client().Put(put, [&putting](std::vector<Status> outcomes) {
      putting.done.set_value(std::move(outcomes));
    });
  }
  for (Putting& putting : in_flight) Settle(putting);
  return 0;
}

int Check(EmbeddedNode& node, NamespaceId space, uint64_t seed) {
  int exit_code = 0;
  uint64_t n = 0;
  while (std::scanf("%" SCNu64, &n) == 1) {
    const Bytes wanted = BytesOf(seed, n);
    Bytes room(wanted.size());
    const std::vector<BlockRead> reads{{IdOf(seed, n), room.sectors()}};
    std::promise<std::vector<BlockReadResult>> done;
    node.client().Get(space, ChainOf(seed, n), reads, kNever,
                      [&](std::vector<BlockReadResult> got) { done.set_value(std::move(got)); });
    const auto results = done.get_future().get();
    if (!results[0].status.ok()) {
      std::printf("missing %" PRIu64 " %s\n", n, results[0].status.ToString().c_str());
    } else if (AsText(room.span()) == AsText(wanted.span())) {
      std::printf("ok %" PRIu64 "\n", n);
    } else {
      std::printf("WRONG %" PRIu64 "\n", n);
      exit_code = 1;
    }
  }
  const StoreStats stats = node.stats();
  std::printf("degraded %" PRIu64 " corrupt %" PRIu64 " memory %" PRIu64 "\n", stats.degraded_reads,
              stats.corrupt_shards, stats.memory_bytes);
  return exit_code;
}

// docs/formats/segment.md, "Superblock": the version at byte 8, XXH3-64 of bytes 0..31 at byte 32.
int Reversion(const char* path) {
  std::FILE* file = std::fopen(path, "r+b");
  if (file == nullptr) return 2;
  for (const long offset : {0L, 32L * 1024}) {
    uint8_t bytes[40];
    if (std::fseek(file, offset, SEEK_SET) != 0 || std::fread(bytes, 40, 1, file) != 1) return 2;
    bytes[8] = 99;
    const uint64_t checksum = Checksum(ByteSpan(bytes, 32));
    for (int i = 0; i < 8; ++i) bytes[32 + i] = static_cast<uint8_t>(checksum >> (8 * i));
    if (std::fseek(file, offset, SEEK_SET) != 0 || std::fwrite(bytes, 40, 1, file) != 1) return 2;
  }
  return std::fclose(file) == 0 ? 0 : 2;
}

int Main(int argc, char** argv) {
  if (argc < 4) return 2;
  const std::string verb = argv[1];
  if (verb == "reversion") return Reversion(argv[2]);
  const uint64_t seed = std::strtoull(argv[3], nullptr, 10);
  StderrLog log;
  EmbeddedOptions options;
  options.data_dir = argv[2];
  const char* size = std::getenv("STORE_TARGET_MIB");
  options.target_bytes = (size != nullptr ? std::strtoull(size, nullptr, 10) : 64) * kMiB;
  auto node = EmbeddedNode::Start(options, log);
  if (!node.ok()) {
    std::fprintf(stderr, "%s\n", node.status().ToString().c_str());
    return 3;
  }
  const auto space =
      AttachAndWait(node.value()->client(), {.name = "driver", .fingerprint = "driver 1"});
  if (!space.ok()) {
    std::fprintf(stderr, "%s\n", space.status().ToString().c_str());
    return 3;
  }
  std::printf("serving\n");
  std::fflush(stdout);
  if (verb == "check") return Check(*node.value(), space.value(), seed);
  if (argc < 6) return 2;
  return Put(*node.value(), space.value(), seed, std::strtoull(argv[4], nullptr, 10),
             std::strtoull(argv[5], nullptr, 10));
}

}  // namespace
}  // namespace cairn::kv

int main(int argc, char** argv) { return cairn::kv::Main(argc, argv); }
