// The bits that stripes share with their run.
#include "kvstore/types/group_hash.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace cairn::kv {
namespace {

constexpr NamespaceId kSpace{{1, 2}};

TEST(GroupHash, BeginsTheIdsOfARunsStripes) {
  Random random(5);
  const RunId run{{3, 4}};
  std::set<StripeId> ids;
  for (int i = 0; i < 1000; ++i) {
    const StripeId stripe = DrawStripeId(kSpace, run, random);
    EXPECT_EQ(GroupHashOf(stripe), GroupHashOf(kSpace, run));
    ids.insert(stripe);
  }
  EXPECT_EQ(ids.size(), 1000u);
}

// It is in ids on disk: never to change.
TEST(GroupHash, IsPinned) {
  EXPECT_EQ(GroupHashOf(kSpace, RunId{{3, 4}}), 21481);
  EXPECT_EQ(GroupHashOf(NamespaceId{}, RunId{}), 41047);
}

TEST(GroupHash, SpreadsRunsEvenly) {
  std::vector<int> groups(16);
  for (uint64_t i = 0; i < 16'000; ++i) ++groups[GroupHashOf(kSpace, RunId{{0, i}}) >> 12];
  for (const int runs : groups) {
    EXPECT_GT(runs, 850);
    EXPECT_LT(runs, 1150);
  }
}

TEST(GroupHash, TellsNamespacesApart) {
  EXPECT_NE(GroupHashOf(kSpace, RunId{{3, 4}}), GroupHashOf(NamespaceId{{2, 1}}, RunId{{3, 4}}));
}

}  // namespace
}  // namespace cairn::kv
