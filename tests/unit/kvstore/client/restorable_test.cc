// Prefixes with holes: full attention, windows, and both together.
#include "kvstore/client/restorable.h"

#include <gtest/gtest.h>

#include <string_view>

namespace cairn::kv {
namespace {

using Lengths = std::vector<uint32_t>;

// 'x' is a block that is there, '.' one that is not.
EachHit HitOf(std::string_view blocks) {
  EachHit hit;
  for (const char block : blocks) {
    const bool is_there = block == 'x';
    hit.blocks.push_back({.size = is_there ? 1u : 0u,
                          .miss = is_there ? MissReason::kNone : MissReason::kAbsent});
  }
  return hit;
}

TEST(Restorable, FullAttentionNeedsEveryBlock) {
  const EachHit hit = HitOf("xxx.xx");
  const std::vector<GroupNeed> groups{{.hit = &hit}};
  EXPECT_EQ(RestorableLengths(groups, 6), (Lengths{1, 2, 3}));
  EXPECT_EQ(LongestRestorable(groups, 6), 3u);
}

TEST(Restorable, AWindowNeedsTheLastBlocksOnly) {
  const EachHit hit = HitOf("xxx.xxxx");
  const std::vector<GroupNeed> groups{{.hit = &hit, .window = 2}};
  EXPECT_EQ(RestorableLengths(groups, 8), (Lengths{1, 2, 3, 6, 7, 8}));
}

TEST(Restorable, AllGroupsMustHaveWhatTheyNeed) {
  const EachHit full = HitOf("xxxxxx..");
  const EachHit window = HitOf("....xxxx");
  const std::vector<GroupNeed> groups{{.hit = &full}, {.hit = &window, .window = 2}};
  EXPECT_EQ(RestorableLengths(groups, 8), (Lengths{6}));
}

TEST(Restorable, ALookupOfTheLastBlocksIsEnoughForAWindow) {
  EXPECT_EQ(FirstOfLast(100, 4), 96u);
  EXPECT_EQ(FirstOfLast(3, 4), 0u);
  const EachHit last = HitOf("xxxx");
  const std::vector<GroupNeed> groups{{.hit = &last, .first = 96, .window = 4}};
  EXPECT_EQ(RestorableLengths(groups, 100), (Lengths{100}));
}

TEST(Restorable, NothingIsRestorableFromNothing) {
  EXPECT_TRUE(RestorableLengths({}, 5).empty());
  const EachHit none;
  const std::vector<GroupNeed> groups{{.hit = &none}};
  EXPECT_EQ(LongestRestorable(groups, 5), 0u);
  EXPECT_EQ(LongestRestorable(groups, 0), 0u);
}

}  // namespace
}  // namespace cairn::kv
