// The shard table against std::map, with ids that collide on purpose.
#include "kvstore/segment/shard_table.h"

#include <gtest/gtest.h>

#include <map>

#include "kvstore/base/random.h"

namespace cairn::kv {
namespace {

TEST(ShardTable, BehavesLikeAMapUnderCollisions) {
  Random random(1);
  ShardTable table;
  std::map<StripeId, ShardPlace> model;
  for (uint32_t i = 0; i < 200000; ++i) {
    // 300 ids on 8 homes.
    const uint64_t draw = random.Below(300);
    const StripeId stripe{{draw, draw % 8}};
    if (random.Chance(1, 2)) {
      const ShardPlace place{.segment = {i}, .sector = i, .payload_size = 4096,
                             .header_sectors = 1, .index = {2}};
      table.Set(stripe, place);
      model[stripe] = place;
    } else {
      EXPECT_EQ(table.Erase(stripe), model.erase(stripe) == 1);
    }
    ASSERT_EQ(table.size(), model.size());
    const StripeId probe{{random.Below(300), random.Below(8)}};
    const auto expected = model.find(probe);
    const ShardPlace* found = table.Find(probe);
    ASSERT_EQ(found != nullptr, expected != model.end());
    ASSERT_TRUE(found == nullptr || *found == expected->second);
  }
}

TEST(ShardTable, StaysWithinItsMemory) {
  Random random(2);
  ShardTable table;
  for (int i = 0; i < 100000; ++i) {
    const uint64_t high = random.Next();
    table.Set({{high, random.Next()}}, {});
  }
  EXPECT_LE(table.memory_bytes(), 110u * table.size());  // 40 B a slot, at least 3/8 full.
  size_t visited = 0;
  table.ForEach([&](StripeId, const ShardPlace&) { ++visited; });
  EXPECT_EQ(visited, 100000u);
}

}  // namespace
}  // namespace cairn::kv
