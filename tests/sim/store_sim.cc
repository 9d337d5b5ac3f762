// Runs a whole store on simulated targets under random work and faults, and checks every answer.
//
// usage: store_sim [--first SEED] [--count N] [--mode within|beyond|full] [--verbose]
//   within  faults of two targets, crashes, power cuts: acknowledged blocks are there, exact
//   beyond  faults of six targets: exact or missing, and nothing hangs
//   full    a small store: puts go on, by eviction
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>

#include "tests/sim/store_checker.h"
#include "tests/sim/store_world.h"

namespace cairn::sim {
namespace {

enum class Mode { kWithin, kBeyond, kFull };
constexpr uint32_t kFixedTtlSeconds = 20;
constexpr kv::Nanos kEpochMax = kv::Seconds(600);

struct SimChain {
  uint32_t space = 0;
  std::vector<kv::BlockId> ids;
  std::vector<uint32_t> sizes;
};

StoreWorldOptions WorldOf(uint64_t seed, Mode mode) {
  StoreWorldOptions options{.seed = seed};
  if (mode == Mode::kFull) {
    options.targets = 4;
    options.segments = 8;
  }
  return options;
}

class StoreSim {
 public:
  StoreSim(uint64_t seed, Mode mode)
      : mode_(mode), random_(seed), world_(WorldOf(random_.Next(), mode)) {
    const uint32_t faulty = mode == Mode::kWithin ? 2 : mode == Mode::kBeyond ? 6 : 0;
    while (faulty_.size() < faulty) {
      faulty_.insert(static_cast<uint32_t>(random_.Below(world_.count())));
    }
    calm_ = mode == Mode::kFull || random_.Chance(1, 4);
    checker_.misses_allowed = mode != Mode::kWithin;
    // Most worlds have no cache: each read meets the faults.
    world_.node_options.store.cache.bytes_max = seed % 4 == 0 ? kv::kMiB : 0;
    MakeChains();
  }

  // Empty, or what went wrong.
  std::string Run() {
    const uint64_t epochs = 2 + random_.Below(3);
    for (uint64_t epoch = 0; epoch < epochs && problem_.empty(); ++epoch) RunEpoch();
    if (problem_.empty()) Settle();
    return problem_;
  }
  const Trace& trace() { return world_.clock().trace(); }
  std::string Summary() const {
    return "puts " + std::to_string(puts_) + " hits " + std::to_string(hits_) + " misses " +
           std::to_string(misses_) + " degraded " + std::to_string(degraded_) + " evicted " +
           std::to_string(evicted_);
  }

 private:
  void MakeChains() {
    const size_t count = mode_ == Mode::kFull ? 60 : 8;
    for (size_t c = 0; c < count; ++c) {
      SimChain chain;
      chain.space = random_.Chance(1, 3) ? 1 : 0;
      const size_t length = 4 + random_.Below(24);
      // Some chains share a prefix with an earlier one.
      if (c > 0 && random_.Chance(1, 2)) {
        const SimChain& parent = chains_[random_.Below(c)];
        const size_t shared = random_.Below(parent.ids.size());
        chain.space = parent.space;
        chain.ids.assign(parent.ids.begin(), parent.ids.begin() + static_cast<ptrdiff_t>(shared));
        chain.sizes.assign(parent.sizes.begin(),
                           parent.sizes.begin() + static_cast<ptrdiff_t>(shared));
      }
      while (chain.ids.size() < length) {
        kv::BlockId id;
        id.high = random_.Next();
        id.low = random_.Next();
        chain.ids.push_back(id);
        chain.sizes.push_back(DrawSize());
      }
      chains_.push_back(std::move(chain));
    }
  }

  uint32_t DrawSize() {
    const uint64_t kind = random_.Below(20);
    const uint64_t scale = mode_ == Mode::kFull ? 4 : 1;
    if (kind < 6) return static_cast<uint32_t>(1 + random_.Below(5'000));
    if (kind < 16) return static_cast<uint32_t>(1 + random_.Below(scale * 60'000));
    if (kind < 19) return static_cast<uint32_t>(1 + random_.Below(scale * 300'000));
    return static_cast<uint32_t>(1 + random_.Below(scale * 1'000'000));
  }

  void RunEpoch() {
    SetFaults();
    const kv::Status started = world_.Start();
    if (!started.ok()) {
      FailUnlessBeyond("the node does not open: " + started.ToString());
      if (world_.crashed()) world_.Bury();
      return;
    }
    ending_ = false;
    TripLater();
    std::vector<kv::Task<void>> sessions;
    const uint64_t count = 1 + random_.Below(4);
    const kv::Instant until =
        world_.clock().Now() + kv::Millis(static_cast<int64_t>(5'000 + random_.Below(40'000)));
    for (uint64_t i = 0; i < count; ++i) sessions.push_back(Session(random_.Next(), until));
    const kv::Instant limit = world_.clock().Now() + kEpochMax;
    const uint64_t end = random_.Below(3);  // 0: a clean stop; 1: the process dies; 2: a power cut.
    // In the middle of the work, when it is to be a crash.
    const kv::Instant crash_at =
        end == 0 ? kv::kNever : until - kv::Millis(static_cast<int64_t>(random_.Below(4'000)));
    const auto all_done = [&] {
      for (const auto& session : sessions) {
        if (!session.done()) return false;
      }
      return true;
    };
    world_.clock().RunUntil([&] {
      const kv::Instant now = world_.clock().Now();
      return all_done() || world_.crashed() || now >= crash_at || now >= limit;
    });
    const bool power_cut = end == 2 && !world_.crashed();
    if (end != 0 && !world_.crashed() && problem_.empty()) {
      world_.Crash(power_cut ? CrashMode::kPowerCut : CrashMode::kProcess);
    }
    ending_ = true;
    world_.clock().RunUntil([&] { return all_done() || world_.clock().Now() >= limit; });
    if (!all_done()) {
      std::fprintf(stderr, "a call hangs\n");
      std::abort();
    }
    for (auto& session : sessions) session.Take();
    if (power_cut) checker_.ForgiveRecent(UnixNow());
    power_was_cut_ = power_was_cut_ || power_cut;
    EndEpoch();
  }

  void EndEpoch() {
    CheckCalm();
    const kv::StoreStats stats = world_.node().stats();
    degraded_ += stats.degraded_reads;
    evicted_ += stats.evicted_stripes;
    if (world_.crashed()) {
      world_.Bury();
    } else {
      const kv::Status stopped = world_.Stop();
      if (!stopped.ok() && calm_ && !world_.crashed()) {
        Fail("a clean stop fails: " + stopped.ToString());
      }
      if (world_.crashed()) world_.Bury();  // While it stopped.
    }
    if (!calm_ && wipes_on_ && random_.Chance(1, 2)) {
      const size_t at = random_.Below(faulty_.size());
      world_.Wipe(*std::next(faulty_.begin(), static_cast<ptrdiff_t>(at)));
    }
  }

  // Without faults nothing may even look like one. A power cut is a fault, and so is what a crash
  // in the middle of a put leaves: some of its shards, enough for the next start to publish it.
  void CheckCalm() {
    republished_ += world_.node().stats().republished_stripes;
    if (!calm_ || power_was_cut_ || republished_ > 0 || world_.crashed()) return;
    const kv::StoreStats stats = world_.node().stats();
    if (mode_ == Mode::kFull) return;
    if (stats.degraded_reads > 0) Fail("a read was degraded, and nothing is broken");
    const auto unavailable = static_cast<size_t>(kv::MissReason::kUnavailable);
    if (stats.misses[unavailable] > 0) Fail("a block was unavailable, and nothing is broken");
  }

  void SetFaults() {
    wipes_on_ = random_.Chance(1, 2);
    for (const uint32_t target : faulty_) {
      DiskFaults faults;
      const auto rate = [&] {
        return random_.Chance(1, 2) ? static_cast<uint32_t>(random_.Below(40'000)) : 0;
      };
      faults.read_error = rate();
      faults.write_error = rate();
      faults.bit_flip = rate();
      faults.torn_write = rate();
      faults.lost_write = rate();
      faults.misdirected_write = rate();
      faults.slow = rate();
      if (calm_) faults = {};
      world_.disk(target).SetFaults(faults);
      world_.disk(target).SetFull(!calm_ && random_.Chance(1, 10));
    }
  }

  // Sometimes the process dies at some write.
  void TripLater() {
    if (mode_ == Mode::kFull || !random_.Chance(1, 3)) return;
    const auto target = static_cast<uint32_t>(random_.Below(world_.count()));
    world_.disk(target).TripWrite(1 + random_.Below(200), Trip::kCrash);
  }

  // One client: looks chains up, reads what is there, puts what is not.
  kv::Task<void> Session(uint64_t seed, kv::Instant until) {
    kv::Random random(seed);
    const Spaces spaces = co_await Attach();
    if (!spaces.ok) co_return;
    while (!Over() && world_.clock().Now() < until) {
      const SimChain& chain = chains_[random.Below(chains_.size())];
      const uint32_t found = co_await LookUp(spaces, chain);
      if (found > 0 && !Over()) co_await Read(spaces, chain, found, random.Next());
      if (found < chain.ids.size() && !Over()) co_await Put(spaces, chain, found, random.Next());
      const uint64_t pause = random.Below(mode_ == Mode::kFull ? 200 : 2'000);
      const kv::Instant wake_at = world_.clock().Now() + kv::Millis(static_cast<int64_t>(pause));
      if (!Over()) co_await world_.clock().SleepUntil(wake_at, nullptr);
    }
  }

  struct Spaces {
    bool ok = false;
    kv::NamespaceId id[2];
  };
  kv::Task<Spaces> Attach() {
    Spaces spaces;
    const bool small = mode_ == Mode::kFull;
    for (uint32_t i = 0; i < 2; ++i) {
      kv::NamespaceOptions options;
      options.name = i == 0 ? "refreshed" : "fixed";
      options.fingerprint = "simulated";
      options.data_shards = small ? 2 : 10;
      options.parity_shards = small ? 1 : 2;
      options.run_blocks = 8;
      options.retention = i == 0 ? kv::RetentionKind::kRefreshed : kv::RetentionKind::kFixed;
      if (i == 1) options.ttl_seconds = kFixedTtlSeconds;
      auto space = co_await world_.node().store().Attach(options);
      if (!space.ok()) {
        if (!world_.crashed()) FailUnlessBeyond("attach: " + space.status().ToString());
        co_return spaces;
      }
      spaces.id[i] = space.value();
    }
    spaces.ok = true;
    co_return spaces;
  }

  kv::Task<uint32_t> LookUp(const Spaces& spaces, const SimChain& chain) {
    auto hit = co_await world_.node().store().Lookup(spaces.id[chain.space], chain.ids);
    if (world_.crashed()) co_return 0;
    if (!hit.ok()) {
      Fail("lookup: " + hit.status().ToString());
      co_return 0;
    }
    const kv::ChainHit& found = hit.value();
    for (uint32_t i = 0; i < found.blocks; ++i) {
      if (found.sizes[i] != chain.sizes[i]) Fail("lookup tells a wrong size");
    }
    if (found.blocks < chain.ids.size() &&
        checker_.MustBeThere(chain.ids[found.blocks], UnixNow())) {
      Fail("lookup hides an acknowledged block, reason " +
           std::to_string(static_cast<int>(found.miss)));
    }
    co_return found.blocks;
  }

  kv::Task<void> Read(const Spaces& spaces, const SimChain& chain, uint32_t found, uint64_t seed) {
    kv::Random random(seed);
    std::vector<kv::BlockRead> reads;
    std::vector<kv::Bytes> rooms;
    std::vector<uint32_t> wanted;
    for (uint32_t i = 0; i < found; ++i) {
      if (wanted.size() < 6 && random.Chance(1, 2)) wanted.push_back(i);
    }
    for (const uint32_t i : wanted) {
      const uint64_t shift = random.Chance(1, 4) ? 1 + random.Below(64) : 0;
      rooms.emplace_back(kv::AlignUp(chain.sizes[i], kv::kSectorSize) + shift);
      reads.push_back({chain.ids[i], rooms.back().span().subspan(shift)});
    }
    const int64_t began = UnixNow();
    const std::vector<kv::BlockRead> asked = reads;
    auto results = co_await world_.node().store().Get(spaces.id[chain.space], chain.ids,
                                                      std::move(reads), kv::kNever);
    for (size_t i = 0; i < results.size(); ++i) {
      const bool ok = results[i].status.ok();
      ++(ok ? hits_ : misses_);
      // After the crash errors mean nothing, but bytes still do.
      if (!ok && world_.crashed()) continue;
      const std::string judged =
          checker_.Judge(asked[i].id, results[i], asked[i].into, began, UnixNow());
      if (!judged.empty()) Fail("get: " + judged);
    }
  }

  kv::Task<void> Put(const Spaces& spaces, const SimChain& chain, uint32_t found, uint64_t seed) {
    kv::Random random(seed);
    kv::ChainPut put;
    put.space = spaces.id[chain.space];
    put.chain = chain.ids;
    put.first = found;
    put.ack = random.Chance(1, 4) ? kv::Ack::kDurable : kv::Ack::kCached;
    const uint64_t count = 1 + random.Below(std::min<uint64_t>(10, chain.ids.size() - found));
    std::vector<kv::Bytes> bytes;
    for (uint32_t i = found; i < found + count; ++i) {
      bytes.push_back(StoreChecker::BytesOf(chain.ids[i], chain.sizes[i]));
      put.blocks.push_back({chain.ids[i], bytes.back().span()});
      checker_.BeginPut(chain.ids[i], chain.sizes[i], UnixNow());
    }
    const bool durable = put.ack == kv::Ack::kDurable;
    auto outcomes = co_await world_.node().store().Put(std::move(put));
    for (uint32_t i = 0; i < outcomes.size(); ++i) {
      const int64_t ttl = chain.space == 1 ? int64_t{kFixedTtlSeconds} * 1000 : 0;
      checker_.EndPut(chain.ids[found + i], outcomes[i], durable, UnixNow(), ttl);
      puts_ += outcomes[i].ok() ? 1 : 0;
      if (!outcomes[i].ok() && (calm_ || faulty_.size() <= 2) && !world_.crashed()) {
        Fail("put: " + outcomes[i].ToString());
      }
    }
  }

  // Faults are over: everything works, and what has to be there is there.
  void Settle() {
    for (uint32_t i = 0; i < world_.count(); ++i) {
      world_.disk(i).SetFaults({});
      world_.disk(i).SetFull(false);
      world_.disk(i).TripWrite(UINT64_MAX / 2, Trip::kNone);
    }
    const kv::Status started = world_.Start();
    if (!started.ok()) return Fail("the healed node does not open: " + started.ToString());
    const bool was_beyond = mode_ == Mode::kBeyond;
    world_.clock().Await(CheckAll(was_beyond));
    const kv::Status stopped = world_.Stop();
    if (!stopped.ok()) Fail("the healed node does not stop: " + stopped.ToString());
  }

  kv::Task<void> CheckAll(bool only_exact) {
    ending_ = false;
    const Spaces spaces = co_await Attach();
    if (!spaces.ok) {
      Fail("the healed node takes no namespace");
      co_return;
    }
    for (const SimChain& chain : chains_) {
      const uint32_t found = co_await LookUp(spaces, chain);
      if (found > 0) co_await Read(spaces, chain, found, random_.Next());
      if (found < chain.ids.size() && !only_exact)
        co_await Put(spaces, chain, found, random_.Next());
      if (!problem_.empty()) co_return;
    }
  }

  bool Over() const { return ending_ || world_.crashed() || !problem_.empty(); }
  int64_t UnixNow() { return world_.clock().UnixNow().value; }
  void Fail(const std::string& what) {
    if (problem_.empty()) problem_ = what;
  }
  void FailUnlessBeyond(const std::string& what) {
    if (mode_ != Mode::kBeyond && !world_.crashed()) Fail(what);
  }

  const Mode mode_;
  kv::Random random_;
  StoreWorld world_;
  StoreChecker checker_;
  std::set<uint32_t> faulty_;
  bool calm_ = false;
  bool wipes_on_ = false;
  bool ending_ = false;
  bool power_was_cut_ = false;
  std::vector<SimChain> chains_;
  std::string problem_;
  uint64_t puts_ = 0, hits_ = 0, misses_ = 0, degraded_ = 0, evicted_ = 0,
           republished_ = 0;
};

int Main(int argc, char** argv) {
  uint64_t first = 1, count = 1;
  Mode mode = Mode::kWithin;
  bool verbose = false;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--verbose") {
      verbose = true;
    } else if (flag == "--first" && i + 1 < argc) {
      first = std::strtoull(argv[++i], nullptr, 10);
    } else if (flag == "--count" && i + 1 < argc) {
      count = std::strtoull(argv[++i], nullptr, 10);
    } else if (flag == "--mode" && i + 1 < argc) {
      const std::string name = argv[++i];
      mode = name == "beyond" ? Mode::kBeyond : name == "full" ? Mode::kFull : Mode::kWithin;
    } else {
      std::fprintf(stderr, "usage: store_sim [--first SEED] [--count N] [--mode M] [--verbose]\n");
      return 2;
    }
  }
  for (uint64_t seed = first; seed < first + count; ++seed) {
    StoreSim simulation(seed, mode);
    const std::string problem = simulation.Run();
    const Trace& trace = simulation.trace();
    if (verbose || !problem.empty()) {
      std::printf("seed %" PRIu64 " events %" PRIu64 " hash %016" PRIx64 " %s\n", seed,
                  trace.count(), trace.hash(), simulation.Summary().c_str());
    }
    if (!problem.empty()) {
      std::printf("seed %" PRIu64 " FAILS: %s\n", seed, problem.c_str());
      return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace cairn::sim

int main(int argc, char** argv) { return cairn::sim::Main(argc, argv); }
