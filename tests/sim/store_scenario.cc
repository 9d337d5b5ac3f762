// Draws scenarios. One draw per statement, so that compilers agree.
#include "tests/sim/store_scenario.h"

#include <algorithm>

#include "kvstore/base/random.h"

namespace cairn::sim {
namespace {

constexpr uint32_t kFixedTtlSeconds = 20;
constexpr uint32_t kShortTtlSeconds = 15;
constexpr uint32_t kSpaces = 4;  // The last one is in memory.

uint64_t Between(kv::Random& random, uint64_t low, uint64_t high) {
  return low + random.Below(high - low + 1);
}

void DrawShape(kv::Random& random, Scenario& scenario) {
  const bool wide = random.Chance(1, 3);
  uint64_t parity = wide ? 2 : Between(random, 1, 2);
  // With m of them out, a put still needs m + 1.
  uint64_t targets = wide ? 12 : Between(random, 2 * parity + 1, 9);
  scenario.world.segments = static_cast<uint32_t>(Between(random, 10, 24));
  if (scenario.mode == StoreMode::kFull) {
    targets = Between(random, 3, 4);
    parity = 1;
    scenario.world.segments = static_cast<uint32_t>(Between(random, 4, 7));
  }
  if (scenario.mode == StoreMode::kCrash) {
    targets = Between(random, 3, 4);
    parity = 1;
    scenario.world.segments = 8;
  }
  scenario.world.targets = static_cast<uint32_t>(targets);
  for (uint32_t i = 0; i < kSpaces; ++i) {
    kv::NamespaceOptions space;
    space.name = i == 0 ? "long" : i == 1 ? "fixed" : i == 2 ? "short" : "window";
    space.fingerprint = "simulated";
    space.parity_shards = static_cast<uint8_t>(parity);
    const uint64_t data_max = targets - parity;
    space.data_shards = static_cast<uint8_t>(wide ? 10 : Between(random, 1, data_max));
    space.run_blocks = 8;
    space.retention = i == 1 ? kv::RetentionKind::kFixed : kv::RetentionKind::kRefreshed;
    if (i == 1) space.ttl_seconds = kFixedTtlSeconds;
    if (i >= 2) space.ttl_seconds = kShortTtlSeconds;
    if (i == 3) space.medium = kv::Medium::kMemory;
    scenario.spaces.push_back(space);
  }
}

uint32_t DrawSize(kv::Random& random, StoreMode mode) {
  const uint64_t kind = random.Below(100);
  uint64_t most = 5'000;
  if (kind >= 45) most = 40'000;
  if (kind >= 82) most = 200'000;
  if (kind >= 97) most = 1'000'000;
  if (mode == StoreMode::kFull) most = kind < 30 ? 40'000 : kind < 95 ? 400'000 : 1'500'000;
  if (mode == StoreMode::kCrash) most = std::min<uint64_t>(most, 150'000);
  return static_cast<uint32_t>(1 + random.Below(most));
}

// Some chains share a prefix with an earlier one; some have the ids of another namespace's.
void DrawChains(kv::Random& random, Scenario& scenario) {
  const bool full = scenario.mode == StoreMode::kFull;
  const size_t count = full ? 40 : scenario.mode == StoreMode::kCrash ? 4 : 8;
  for (size_t c = 0; c < count; ++c) {
    SimChain chain;
    chain.space = static_cast<uint32_t>(random.Below(kSpaces));
    size_t length = 4 + random.Below(24);
    if (scenario.mode == StoreMode::kCrash) length = 2 + length / 4;
    const uint64_t kin = c == 0 ? 3 : random.Below(4);
    if (kin < 2) {
      const SimChain& parent = scenario.chains[random.Below(c)];
      const size_t shared = random.Below(parent.ids.size());
      chain.space = parent.space;
      const auto cut = static_cast<ptrdiff_t>(shared);
      chain.ids.assign(parent.ids.begin(), parent.ids.begin() + cut);
      chain.sizes.assign(parent.sizes.begin(), parent.sizes.begin() + cut);
    } else if (kin == 2 && random.Chance(1, 3)) {
      const SimChain& twin = scenario.chains[random.Below(c)];
      chain.space = (twin.space + 1) % kSpaces;
      chain.ids = twin.ids;
      chain.sizes = twin.sizes;
    }
    while (chain.ids.size() < length) {
      kv::BlockId id;
      id.high = random.Next();
      id.low = random.Next();
      chain.ids.push_back(id);
      chain.sizes.push_back(DrawSize(random, scenario.mode));
    }
    scenario.chains.push_back(std::move(chain));
  }
}

void DrawFaults(kv::Random& random, Scenario& scenario) {
  const uint64_t kind = random.Below(8);
  scenario.fault_mask = static_cast<uint32_t>(random.Next());
  if (scenario.mode == StoreMode::kCrash) return;
  scenario.style = kind < 2   ? FaultStyle::kCalm
                   : kind < 6 ? FaultStyle::kSilent
                              : FaultStyle::kTold;
  const uint64_t parity = scenario.spaces[0].parity_shards;
  uint64_t faulty = parity;
  if (scenario.mode == StoreMode::kBeyond) {
    scenario.style = FaultStyle::kSilent;
    faulty = std::min<uint64_t>(scenario.world.targets, parity + Between(random, 1, 4));
  }
  while (scenario.faulty.size() < faulty) {
    scenario.faulty.insert(static_cast<uint32_t>(random.Below(scenario.world.targets)));
  }
}

// What else is in this seed, or not (swarm).
void DrawVerbs(kv::Random& random, Scenario& scenario) {
  scenario.deletes = random.Chance(1, 2);
  scenario.leases = random.Chance(1, 2);
  scenario.own_ttls = random.Chance(1, 2);
  scenario.keeps = random.Chance(1, 3);
  scenario.scrubs = random.Chance(1, 3);
  scenario.drops = random.Chance(1, 3);
  scenario.clock_steps = random.Chance(1, 4);
  const uint64_t policy = random.Below(12);
  if (policy == 0) scenario.admission = kv::AdmissionPolicy::kWriteBudget;
  if (policy == 1) scenario.admission = kv::AdmissionPolicy::kSecondSight;
  if (!scenario.keeps) return;
  // In a full store the quota binds; elsewhere evictions at it would look like faults.
  const StoreWorldOptions& world = scenario.world;
  const uint64_t capacity = world.targets * world.segments * world.segment_size;
  const bool full = scenario.mode == StoreMode::kFull;
  scenario.spaces[kKeptSpace].quota_bytes = full ? capacity / 8 : kv::kGiB;
}

}  // namespace

std::vector<BlockKey> SimChain::keys(size_t first, size_t end) const {
  std::vector<BlockKey> keys;
  for (size_t i = first; i < end; ++i) keys.push_back(key(i));
  return keys;
}

Scenario DrawScenario(uint64_t seed, StoreMode mode) {
  kv::Random random(seed * 4 + static_cast<uint64_t>(mode));
  Scenario scenario;
  scenario.seed = random.Next();
  scenario.mode = mode;
  scenario.world.seed = random.Next();
  DrawShape(random, scenario);
  DrawChains(random, scenario);
  DrawFaults(random, scenario);
  scenario.cache_bytes = random.Chance(1, 4) ? kv::kMiB : 0;
  DrawVerbs(random, scenario);
  scenario.epochs = 2 + random.Below(3);
  scenario.sessions_max = 4;
  if (mode == StoreMode::kFull) {
    scenario.pause_millis_max = 200;
    const uint64_t capacity =
        scenario.world.targets * scenario.world.segments * scenario.world.segment_size;
    scenario.put_bytes_max = capacity / 2;
    scenario.epochs = 2 + random.Below(2);
  }
  if (mode == StoreMode::kCrash) {
    scenario.epochs = 1;
    scenario.sessions_max = 2;
    scenario.pause_millis_max = 800;
    scenario.epoch_millis_max = 3'000;
  }
  return scenario;
}

int64_t TtlMillis(const kv::NamespaceOptions& space) { return int64_t{space.ttl_seconds} * 1000; }

}  // namespace cairn::sim
