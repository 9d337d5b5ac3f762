// A store in a process of its own, driven through stdin and stdout; it can be killed at any moment.
//
// usage: store_driver serve DIR SEED           obeys lines of stdin, each answered by "done":
//          put FIRST COUNT                     "ack N" or "refused N STATUS" for each block
//          durable FIRST COUNT                 the same, acknowledged when power may fail
//          get N...                            "ok N", "missing N STATUS" or "WRONG N"
//          stats                               "degraded D corrupt C evicted E memory M"
//          stop                                ends the store in order: "stopped STATUS"
//        store_driver load DIR SEED FIRST      puts for ever from FIRST on, and reads back some of
//                                              what it has put; lines as above, but no "ok"
//        store_driver lease DIR SEED FIRST     the same, after a lookup of the first chain under
//                                              a lease, "leased" or "unleased", and a shared region
//        store_driver reversion FILE 0         makes the superblocks whole ones of version 99
// DIR may be the address of a cairnd, "unix:PATH" or "tcp:HOST:PORT"; stats and stop are then none.
// "serving" is the first line. The environment: STORE_TARGET_MIB, STORE_MEMTABLE_KIB,
// STORE_CACHE_KIB, CAIRN_POLLER.
// Exit codes: 0 done, 1 wrong bytes, 3 the store does not start (its message goes to stderr).
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <future>
#include <iostream>
#include <sstream>
#include <string>

#include "kvstore/base/checksum.h"
#include "kvstore/node/embedded/embedded_node.h"
#include "kvstore/remote/remote_client.h"
#include "tests/integration/store/driver_blocks.h"
#include "tests/support/poller_from_environment.h"

namespace cairn::kv {
namespace {

constexpr size_t kInFlight = 8;

class StderrLog final : public Log {
 public:
  void Write(LogLevel level, std::string_view message) override {
    if (level < LogLevel::kInfo) return;
    std::fprintf(stderr, "%.*s\n", static_cast<int>(message.size()), message.data());
  }
};

// One block on its way, in either direction.
struct Transfer {
  uint64_t n = 0;
  bool is_put = false;
  Bytes bytes;  // What is put, or room for what is read.
  std::promise<Status> done;
};

class Driver {
 public:
  Driver(Client& client, NamespaceId space, uint64_t seed)
      : client_(client), space_(space), seed_(seed) {}

  // Both wait for the oldest transfer when too many are on their way.
  void Put(uint64_t n, Ack ack) {
    Transfer& transfer = Begin(n, true);
    transfer.bytes = DriverBytes(seed_, n);
    ChainPut put{.space = space_, .chain = DriverChain(seed_, n)};
    put.first = static_cast<uint32_t>(n % kChainBlocks);
    put.blocks = {{put.chain.back(), transfer.bytes.span()}};
    put.ack = ack;
    client_.Put(put, [&transfer](std::vector<Status> outcomes) {
      transfer.done.set_value(std::move(outcomes[0]));
    });
  }
  void Get(uint64_t n) {
    Transfer& transfer = Begin(n, false);
    transfer.bytes = Bytes(DriverBytes(seed_, n).size());
    const std::vector<BlockRead> reads{{DriverId(seed_, n), transfer.bytes.sectors()}};
    client_.Get(space_, DriverChain(seed_, n), reads, kNever,
                [&transfer](std::vector<BlockReadResult> got) {
                  transfer.done.set_value(std::move(got[0].status));
                });
  }
  void SettleAll() {
    while (!in_flight_.empty()) SettleOldest();
  }

  void BeQuietAboutGoodReads() { quiet_ = true; }
  bool any_wrong() const { return any_wrong_; }
  const std::vector<uint64_t>& acknowledged() const { return acknowledged_; }

 private:
  Transfer& Begin(uint64_t n, bool is_put) {
    if (in_flight_.size() >= kInFlight) SettleOldest();
    Transfer& transfer = in_flight_.emplace_back();
    transfer.n = n;
    transfer.is_put = is_put;
    return transfer;
  }

  void SettleOldest() {
    Transfer& transfer = in_flight_.front();
    const Status status = transfer.done.get_future().get();
    const bool is_read = !transfer.is_put && status.ok();
    const bool wrong = is_read && AsText(transfer.bytes.span()) !=
                                      AsText(DriverBytes(seed_, transfer.n).span());
    any_wrong_ = any_wrong_ || wrong;
    if (status.ok() && transfer.is_put) acknowledged_.push_back(transfer.n);
    if (!status.ok()) {
      std::printf("%s %" PRIu64 " %s\n", transfer.is_put ? "refused" : "missing", transfer.n,
                  status.ToString().c_str());
    } else if (wrong || transfer.is_put || !quiet_) {
      std::printf("%s %" PRIu64 "\n", wrong ? "WRONG" : transfer.is_put ? "ack" : "ok", transfer.n);
    }
    std::fflush(stdout);
    in_flight_.pop_front();
  }

  Client& client_;
  const NamespaceId space_;
  const uint64_t seed_;
  bool quiet_ = false;
  bool any_wrong_ = false;
  std::vector<uint64_t> acknowledged_;
  std::deque<Transfer> in_flight_;
};

// The store itself, or the way to one in another process.
struct Store {
  std::unique_ptr<EmbeddedNode> node = {};
  std::unique_ptr<RemoteClient> remote = {};
  Client& client() { return node ? node->client() : remote->client(); }
};

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::strtoull(value, nullptr, 10) : otherwise;
}

Result<Store> Open(const std::string& where, Log& log) {
  Store store;
  const bool is_tcp = where.rfind("tcp:", 0) == 0;
  if (is_tcp || where.rfind("unix:", 0) == 0) {
    RemoteOptions options;
    options.address = is_tcp ? where.substr(4) : where;
    KV_ASSIGN_OR_RETURN(store.remote,
                        RemoteClient::Connect(options, PollerFromEnvironment(), log));
    return store;
  }
  EmbeddedOptions options;
  options.data_dir = where;
  options.poller = PollerFromEnvironment();
  options.target_bytes = FromEnvironment("STORE_TARGET_MIB", 64) * kMiB;
  options.metadata_memtable_bytes =
      FromEnvironment("STORE_MEMTABLE_KIB", options.metadata_memtable_bytes / kKiB) * kKiB;
  uint64_t& cache = options.node.store.cache.bytes_max;
  cache = FromEnvironment("STORE_CACHE_KIB", cache / kKiB) * kKiB;
  KV_ASSIGN_OR_RETURN(store.node, EmbeddedNode::Start(options, log));
  return store;
}

// What a client holds when it dies: a lease, and memory that it shares with the store.
void TakeLease(Store& store, NamespaceId space, uint64_t seed) {
  std::promise<bool> leased;
  LeaseOrder order;
  order.duration = Seconds(600);
  const std::vector<BlockId> chain = DriverChain(seed, kChainBlocks - 1);
  store.client().Lookup(space, chain, order, [&leased](Result<ChainHit> hit) {
    leased.set_value(hit.ok() && hit.value().lease != LeaseId());
  });
  std::printf("%s\n", leased.get_future().get() ? "leased" : "unleased");
  if (store.remote && !store.remote->NewRegion(kMiB).ok()) std::printf("no region\n");
  std::fflush(stdout);
}

int Load(Driver& driver, uint64_t seed, uint64_t first) {
  driver.BeQuietAboutGoodReads();
  Random random(seed + first);
  for (uint64_t n = first; !driver.any_wrong(); ++n) {
    driver.Put(n, Ack::kCached);
    const std::vector<uint64_t>& known = driver.acknowledged();
    if (!known.empty()) driver.Get(known[random.Below(known.size())]);
  }
  return 1;
}

void Obey(EmbeddedNode* node, Driver& driver, const std::string& verb, std::istream& words) {
  if (verb == "put" || verb == "durable") {
    uint64_t first = 0;
    uint64_t count = 0;
    words >> first >> count;
    const Ack ack = verb == "put" ? Ack::kCached : Ack::kDurable;
    for (uint64_t n = first; n < first + count; ++n) driver.Put(n, ack);
  } else if (verb == "get") {
    for (uint64_t n = 0; words >> n;) driver.Get(n);
  } else if (verb == "stats" && node != nullptr) {
    const StoreStats stats = node->stats();
    std::printf("degraded %" PRIu64 " corrupt %" PRIu64 " evicted %" PRIu64 " memory %" PRIu64 "\n",
                stats.degraded_reads, stats.corrupt_shards, stats.evicted_stripes,
                stats.memory_bytes);
  } else if (verb == "stop" && node != nullptr) {
    std::printf("stopped %s\n", node->Stop().ToString().c_str());
  }
  driver.SettleAll();
  std::printf("done\n");
  std::fflush(stdout);
}

int Serve(EmbeddedNode* node, Driver& driver) {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string verb;
    words >> verb;
    Obey(node, driver, verb, words);
  }
  return driver.any_wrong() ? 1 : 0;
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
  Result<Store> store = Open(argv[2], log);
  if (!store.ok()) {
    std::fprintf(stderr, "%s\n", store.status().ToString().c_str());
    return 3;
  }
  Client& client = store.value().client();
  const auto space = AttachAndWait(client, {.name = "driver", .fingerprint = "driver 1"});
  if (!space.ok()) {
    std::fprintf(stderr, "%s\n", space.status().ToString().c_str());
    return 3;
  }
  std::printf("serving\n");
  std::fflush(stdout);
  Driver driver(client, space.value(), seed);
  if (verb == "serve") return Serve(store.value().node.get(), driver);
  if (argc < 5) return 2;
  const uint64_t first = std::strtoull(argv[4], nullptr, 10);
  if (verb == "lease") TakeLease(store.value(), space.value(), seed);
  return verb == "lease" || verb == "load" ? Load(driver, seed, first) : 2;
}

}  // namespace
}  // namespace cairn::kv

int main(int argc, char** argv) { return cairn::kv::Main(argc, argv); }
