// Leases against reclaim: a full store takes puts, and no leased block goes.
#include <gtest/gtest.h>

#include "tests/unit/kvstore/node/machine.h"

namespace cairn::kv {
namespace {

using ::testing::Each;
using testing::IsOk;

sim::StoreWorldOptions SmallWorld() {
  sim::StoreWorldOptions small;
  small.targets = 4;
  small.segments = 8;
  return small;
}

class Pressure {
 public:
  Pressure() : machine(SmallWorld(), {.data_shards = 2, .parity_shards = 1}) {}

  void Fill(int chains) {
    for (int i = 0; i < chains; ++i) {
      const Chain cold = machine.MakeChain(8, 500'000);
      ASSERT_THAT(machine.Put(cold), Each(IsOk())) << i;
      machine.Pass(Seconds(2));
    }
  }
  ChainHit Lease(const Chain& chain, SessionId session, Nanos duration) {
    const LeaseOrder order{.session = session, .duration = duration};
    return machine.world.clock()
        .Await(machine.store().Lookup(machine.space, chain.ids, order))
        .value();
  }

  Machine machine;
};

TEST(LeasePressure, EvictionNeverTakesALeasedBlock) {
  Pressure pressure;
  const Chain leased = pressure.machine.MakeChain(8, 500'000);
  EXPECT_THAT(pressure.machine.Put(leased), Each(IsOk()));
  EXPECT_NE(pressure.Lease(leased, {}, Seconds(500)).lease.value, 0u);
  pressure.Fill(60);  // 240 MB into 128 MiB of targets; 120 s.
  EXPECT_GT(pressure.machine.world.node().stats().evicted_stripes, 0u);
  EXPECT_EQ(pressure.machine.Readable(leased), 8u);
}

TEST(LeasePressure, ADeadSessionsBlocksAreEvictedLikeOthers) {
  Pressure pressure;
  const Chain leased = pressure.machine.MakeChain(8, 500'000);
  EXPECT_THAT(pressure.machine.Put(leased), Each(IsOk()));
  StripedStore& store = pressure.machine.world.node().striped();
  const SessionId session = store.OpenSession();
  EXPECT_NE(pressure.Lease(leased, session, Seconds(500)).lease.value, 0u);
  store.EndSession(session);
  pressure.Fill(60);
  EXPECT_EQ(pressure.machine.Readable(leased), 0u);
}

TEST(LeasePressure, LeasesAreBoundedByAShareOfTheCapacity) {
  Pressure pressure;
  uint64_t granted = 0;
  for (int i = 0; i < 16; ++i) {  // 6 MB each with parity, of 128 MiB.
    const Chain chain = pressure.machine.MakeChain(8, 500'000);
    EXPECT_THAT(pressure.machine.Put(chain), Each(IsOk()));
    const ChainHit hit = pressure.Lease(chain, {}, Seconds(600));
    EXPECT_EQ(hit.blocks, 8u) << "a lookup without a lease still answers";
    granted += hit.lease.value != 0 ? 1 : 0;
  }
  EXPECT_EQ(granted, 5u);
  StripedStore& store = pressure.machine.world.node().striped();
  const Instant now = pressure.machine.world.clock().Now();
  EXPECT_EQ(store.home().leases().Stats(now).refused, 11u);
  pressure.Fill(40);
}

}  // namespace
}  // namespace cairn::kv
