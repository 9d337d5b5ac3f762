// Puts, gets, deletions and evictions while nodes die and homes move, in many random orders.
#include <gtest/gtest.h>

#include "tests/unit/kvstore/home/home_chains.h"

namespace cairn::kv {
namespace {

// What is read is right, always. What was acknowledged, and not evicted since, is there at the end;
// what was deleted is not.
class Wanderer {
 public:
  explicit Wanderer(uint64_t seed)
      : seed_(seed),
        nodes_(4 + static_cast<uint32_t>(seed % 3) * 4),
        world_({.nodes = nodes_, .targets_each = 2, .seed = seed}),
        random_(world_.random()) {
    world_.links().loss_per_million = random_.Chance(1, 2) ? 5000 : 0;
  }

  void Step() {
    const uint64_t what = random_.Below(22);
    if (what < 6 || chains_.empty()) return PutOne();
    const size_t at = random_.Below(chains_.size());
    if (what < 13) {
      const size_t block = random_.Below(chains_[at].ids.size());
      EXPECT_NE(Get(world_, AnyNode(), chains_[at], block).code(), Code::kCorrupt) << seed_;
    } else if (what < 15) {
      (void)Lookup(world_, AnyNode(), chains_[at], {.duration = Seconds(5)});
    } else if (what < 17) {
      EvictOne(at);
    } else if (what == 17) {
      DeleteOne(at);
    } else {
      Trouble(what);
    }
  }

  void Check() {
    world_.links().loss_per_million = 0;
    if (dead_ != 0) world_.Restart(dead_);
    world_.Fill();
    world_.RunFor(Seconds(5));
    for (const size_t at : deleted_) CheckOne(at, false);
    for (const size_t at : acknowledged_) {
      if (!evicted_.contains(at)) CheckOne(at, true);
    }
  }

 private:
  uint32_t AnyNode() {
    uint32_t n = 0;
    while (!world_.IsUp(n)) n = 1 + static_cast<uint32_t>(random_.Below(nodes_));
    return n;
  }

  void PutOne() {
    const bool anew = chains_.empty() || random_.Chance(2, 3);
    if (anew) chains_.push_back(MakeChain(world_, 1 + random_.Below(9), 3000));
    const size_t at = anew ? chains_.size() - 1 : random_.Below(chains_.size());
    deleted_.erase(at);
    auto putting = world_.node(AnyNode()).store->Put(PutOf(world_, chains_[at]));
    MoveHomesMeanwhile();
    for (const Status& put : world_.Await(std::move(putting))) {
      if (!put.ok()) return;
    }
    acknowledged_.insert(at);
    evicted_.erase(at);
  }

  void EvictOne(size_t at) {
    for (const StripeId& stripe : StripesOf(world_, chains_[at])) {
      evicted_.insert(at);
      const StripeName name{world_.space, RunId{chains_[at].ids[0]}, stripe};
      (void)world_.Await(world_.node(AnyNode()).index->Remove(name, MissReason::kEvicted));
    }
  }

  void DeleteOne(size_t at) {
    evicted_.insert(at);
    auto deleting = world_.node(AnyNode()).store->Delete(world_.space, chains_[at].ids, 0);
    MoveHomesMeanwhile();
    if (world_.Await(std::move(deleting)).ok()) deleted_.insert(at);
  }

  void MoveHomesMeanwhile() {
    if (!random_.Chance(1, 4)) return;
    world_.RunFor(Micros(static_cast<int64_t>(random_.Below(1500))));
    MoveHomes();
  }
  void MoveHomes() {
    world_.TakeOver(AnyNode());
    if (dead_ == 0) world_.Fill();
  }

  void Trouble(uint64_t what) {
    if (what == 18) return MoveHomes();
    if (what == 19 && dead_ == 0) {
      dead_ = AnyNode();
      world_.Kill(dead_);
    } else if (what == 20 && dead_ != 0) {
      if (random_.Chance(1, 2)) world_.TakeOver(dead_);
    } else if (what == 21 && dead_ != 0) {
      world_.Restart(dead_);
      world_.Fill();
      dead_ = 0;
    } else {
      world_.RunFor(Seconds(static_cast<int64_t>(random_.Below(30))));
    }
  }

  void CheckOne(size_t at, bool is_there) {
    for (size_t block = 0; block < chains_[at].ids.size(); ++block) {
      const uint32_t n = AnyNode();
      const Status got = Get(world_, n, chains_[at], block);
      EXPECT_EQ(got.ok(), is_there) << got.ToString() << ", seed " << seed_ << ", chain " << at
                                    << ", block " << block << ", node " << n;
    }
  }

  const uint64_t seed_;
  const uint32_t nodes_;
  World world_;
  Random& random_;
  uint32_t dead_ = 0;  // Node; 0: none.
  std::vector<Chain> chains_;
  // Of these.
  std::set<size_t> acknowledged_;
  std::set<size_t> evicted_;
  std::set<size_t> deleted_;
};

TEST(Homes, KeepWhatWasAcknowledgedWhileNodesComeAndGo) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Wanderer wanderer(seed);
    for (int step = 0; step < 120; ++step) wanderer.Step();
    wanderer.Check();
    if (::testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace cairn::kv
