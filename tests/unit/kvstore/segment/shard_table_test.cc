// The shard table against std::map, at every size, up to every limit.
#include "kvstore/segment/shard_table.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "kvstore/base/random.h"
#include "kvstore/types/limits.h"

namespace cairn::kv {
namespace {

ShardPlace PlaceOf(uint32_t i) {
  return {.segment = {i},
          .sector = i % 5000,
          .payload_size = 4096 * (1 + i % 7),
          .header_sectors = 1,
          .index = {static_cast<uint8_t>(i % 12)}};
}

// A Random that gives few distinct ids, all in one part or all over the table.
StripeId FewIds(Random& random, uint64_t stride) {
  return {{7, random.Below(300) * stride}};
}

TEST(ShardTable, BehavesLikeAMap) {
  for (const uint64_t stride : {uint64_t{1}, uint64_t{0x0123456789abcdef}}) {
    Random random(stride);
    ShardTable table;
    std::map<StripeId, ShardPlace> model;
    for (uint32_t i = 0; i < 100000; ++i) {
      const StripeId stripe = FewIds(random, stride);
      if (random.Chance(1, 2)) {
        table.Set(stripe, PlaceOf(i));
        model[stripe] = PlaceOf(i);
      } else {
        ASSERT_EQ(table.Erase(stripe), model.erase(stripe) == 1);
      }
      ASSERT_EQ(table.size(), model.size());
      const StripeId probe = FewIds(random, stride);
      const auto expected = model.find(probe);
      const std::optional<ShardPlace> found = table.Find(probe);
      ASSERT_EQ(found.has_value(), expected != model.end());
      ASSERT_TRUE(!found || *found == expected->second);
    }
  }
}

// The table's parts are full and their clusters long.
TEST(ShardTable, KeepsEveryEntryWhileItGrowsAndShrinks) {
  Random random(3);
  std::vector<StripeId> stripes;
  for (int i = 0; i < 100000; ++i) {
    const uint64_t high = random.Next();
    stripes.push_back({{high, random.Next()}});
  }
  ShardTable table;
  for (uint32_t i = 0; i < stripes.size(); ++i) table.Set(stripes[i], PlaceOf(i));
  for (uint32_t i = 0; i < stripes.size(); ++i) ASSERT_EQ(table.Find(stripes[i]), PlaceOf(i));
  const uint64_t full = table.memory_bytes();
  for (uint32_t i = 0; i < stripes.size(); ++i) {
    ASSERT_TRUE(i % 10 == 0 || table.Erase(stripes[i]));
  }
  for (uint32_t i = 0; i < stripes.size(); ++i) {
    ASSERT_EQ(table.Find(stripes[i]).has_value(), i % 10 == 0);
  }
  EXPECT_EQ(table.size(), stripes.size() / 10);
  EXPECT_LT(table.memory_bytes(), full / 4);  // What is free goes back.
}

TEST(ShardTable, ItsOrderDependsOnTheEntriesAlone) {
  Random random(4);
  std::vector<StripeId> stripes;
  for (int i = 0; i < 20000; ++i) {
    const uint64_t high = random.Next();
    stripes.push_back({{high, random.Next()}});
  }
  const auto order_of = [](const ShardTable& table) {
    std::vector<StripeId> order;
    table.ForEach([&](StripeId stripe, const ShardPlace&) { order.push_back(stripe); });
    return order;
  };
  ShardTable one;
  for (const StripeId& stripe : stripes) one.Set(stripe, PlaceOf(1));
  ShardTable other;
  for (size_t i = stripes.size(); i-- > 0;) other.Set(stripes[i], PlaceOf(2));
  for (size_t i = 0; i < 5000; ++i) other.Erase(stripes[i]);
  for (size_t i = 5000; i-- > 0;) other.Set(stripes[i], PlaceOf(3));
  EXPECT_EQ(order_of(one), order_of(other));
}

TEST(ShardTable, PlacesComeBackEqualUpToEveryLimit) {
  const ShardPlace largest{.segment = {kSegmentsMax - 1},
                           .sector = kSegmentSizeMax / kSectorSize - 1,
                           .payload_size = kStripePayloadMax,
                           .header_sectors = 13,
                           .index = {kShardsMax - 1}};
  const ShardPlace least{
      .segment = {}, .sector = 0, .payload_size = 4096, .header_sectors = 1, .index = {}};
  for (const ShardPlace& place : {largest, least, PlaceOf(77)}) {
    ASSERT_TRUE(IsPackable(place));
    EXPECT_EQ(PackedPlace(place).Unpack(), place);
    EXPECT_TRUE(PackedPlace(place).occupied());
  }
  const auto differs = [&](auto change) {
    ShardPlace place = largest;
    change(place);
    return !IsPackable(place);
  };
  EXPECT_TRUE(differs([](ShardPlace& place) { ++place.segment.value; }));
  EXPECT_TRUE(differs([](ShardPlace& place) { ++place.sector; }));
  EXPECT_TRUE(differs([](ShardPlace& place) { place.payload_size += 4096; }));
  EXPECT_TRUE(differs([](ShardPlace& place) { place.payload_size = 0; }));
  EXPECT_TRUE(differs([](ShardPlace& place) { place.payload_size = 5000; }));
  EXPECT_TRUE(differs([](ShardPlace& place) { ++place.header_sectors; }));
  EXPECT_TRUE(differs([](ShardPlace& place) { place.header_sectors = 0; }));
  EXPECT_TRUE(differs([](ShardPlace& place) { ++place.index.value; }));
}

TEST(ShardTable, StaysWithinItsMemoryAtEverySize) {
  Random random(2);
  ShardTable table;
  for (int i = 0; i < 300000; ++i) {
    const uint64_t high = random.Next();
    table.Set({{high, random.Next()}}, PlaceOf(1));
    // 24 bytes a slot, four fifths of them taken.
    if (i < 100000 || i % 1000 != 0) continue;
    ASSERT_LE(table.memory_bytes(), 30 * table.size()) << i;
  }
}

}  // namespace
}  // namespace cairn::kv
