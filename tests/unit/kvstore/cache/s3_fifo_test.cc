// The policy against a naive model that searches lists, and the properties it is chosen for.
#include "kvstore/cache/s3_fifo.h"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <set>
#include <string>

#include "kvstore/base/random.h"

namespace cairn::kv {
namespace {

// The paper's algorithm 1 word for word, over queues that are searched from end to end.
class NaiveS3Fifo {
 public:
  explicit NaiveS3Fifo(uint64_t bytes_max) : bytes_max_(bytes_max) {}

  bool Hit(int key) {
    for (std::deque<Item>* queue : {&small_, &main_}) {
      for (Item& item : *queue) {
        if (item.key != key) continue;
        item.uses = std::min(item.uses + 1, 3);
        return true;
      }
    }
    return false;
  }
  void Admit(int key, uint64_t bytes) {
    if (bytes > bytes_max_) return;
    const bool in_ghost = Take(ghost_, key);
    while (Bytes(small_) + Bytes(main_) + bytes > bytes_max_) Evict();
    (in_ghost ? main_ : small_).push_front({key, bytes, 0});
  }
  void Erase(int key) {
    Take(small_, key) || Take(main_, key) || Take(ghost_, key);
  }
  std::set<int> Kept() const {
    std::set<int> keys;
    for (const std::deque<Item>* queue : {&small_, &main_}) {
      for (const Item& item : *queue) keys.insert(item.key);
    }
    return keys;
  }

 private:
  struct Item {
    int key;
    uint64_t bytes;
    int uses;
  };
  static uint64_t Bytes(const std::deque<Item>& queue) {
    uint64_t bytes = 0;
    for (const Item& item : queue) bytes += item.bytes;
    return bytes;
  }
  static bool Take(std::deque<Item>& queue, int key) {
    return std::erase_if(queue, [&](const Item& item) { return item.key == key; }) > 0;
  }
  void Evict() {
    for (bool evicted = false; !evicted;) {
      const bool from_main =
          small_.empty() || (Bytes(small_) <= bytes_max_ / 10 && !main_.empty());
      std::deque<Item>& queue = from_main ? main_ : small_;
      Item item = queue.back();
      queue.pop_back();
      if (from_main && item.uses > 0) {
        --item.uses;
        main_.push_front(item);
      } else if (!from_main && item.uses > 1) {
        item.uses = 0;
        main_.push_front(item);
      } else {
        evicted = true;
        if (from_main) continue;
        ghost_.push_front(item);
        while (Bytes(ghost_) > bytes_max_) ghost_.pop_back();
      }
    }
  }

  const uint64_t bytes_max_;
  std::deque<Item> small_, main_, ghost_;
};

// Skewed as caches see it: key k with a weight of about 1 / (k + 1).
int DrawZipf(Random& random, int keys) {
  const double unit = random.Unit();
  return static_cast<int>(std::pow(static_cast<double>(keys), unit)) - 1;
}

TEST(S3Fifo, KeepsWhatTheNaiveModelKeeps) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Random random(seed);
    const uint64_t bytes_max = 100 + random.Below(2'000);
    const uint64_t size_max = 1 + random.Below(bytes_max / 4);
    S3Fifo<int> policy(bytes_max);
    NaiveS3Fifo naive(bytes_max);
    std::set<int> kept;
    for (int step = 0; step < 3'000; ++step) {
      const int key = DrawZipf(random, 300);
      if (random.Chance(1, 50)) {
        policy.Erase(key);
        naive.Erase(key);
        kept.erase(key);
        continue;
      }
      const bool hit = policy.Hit(key);
      ASSERT_EQ(hit, naive.Hit(key)) << "seed " << seed << " step " << step;
      if (hit) continue;
      const uint64_t bytes = 1 + random.Below(size_max);
      std::vector<int> evicted;
      ASSERT_TRUE(policy.Admit(key, bytes, evicted));
      naive.Admit(key, bytes);
      kept.insert(key);
      for (const int gone : evicted) ASSERT_EQ(kept.erase(gone), 1u);
      ASSERT_EQ(kept, naive.Kept()) << "seed " << seed << " step " << step;
      ASSERT_LE(policy.bytes(), bytes_max);
    }
  }
}

TEST(S3Fifo, RefusesWhatIsLargerThanEverything) {
  S3Fifo<int> policy(100);
  std::vector<int> evicted;
  EXPECT_TRUE(policy.Admit(1, 100, evicted));
  EXPECT_FALSE(policy.Admit(2, 101, evicted));
  EXPECT_TRUE(policy.Contains(1));
  EXPECT_TRUE(evicted.empty());
}

TEST(S3Fifo, AScanDoesNotDriveOutWhatIsUsed) {
  S3Fifo<int> policy(100);
  std::vector<int> evicted;
  for (int round = 0; round < 3; ++round) {
    for (int key = 0; key < 50; ++key) {
      if (!policy.Hit(key)) policy.Admit(key, 1, evicted);
    }
  }
  for (int key = 1'000; key < 11'000; ++key) policy.Admit(key, 1, evicted);
  int there = 0;
  for (int key = 0; key < 50; ++key) there += policy.Contains(key) ? 1 : 0;
  EXPECT_EQ(there, 50);
}

TEST(S3Fifo, TheGhostLetsWhatComesBackIntoTheMainQueue) {
  S3Fifo<int> policy(100);
  std::vector<int> evicted;
  for (int key = 0; key < 150; ++key) policy.Admit(key, 1, evicted);
  ASSERT_FALSE(policy.Contains(20));
  policy.Admit(20, 1, evicted);
  for (int key = 1'000; key < 3'000; ++key) policy.Admit(key, 1, evicted);
  EXPECT_TRUE(policy.Contains(20));
}

TEST(S3Fifo, SeenRemembersWithinItsLimit) {
  S3Fifo<int> policy(100);
  EXPECT_FALSE(policy.Seen(1, 10));
  EXPECT_TRUE(policy.Seen(1, 10));
  for (int key = 2; key < 12; ++key) EXPECT_FALSE(policy.Seen(key, 10));
  EXPECT_FALSE(policy.Seen(1, 10));  // Ten others came after it.
  EXPECT_FALSE(policy.Seen(99, 101));
  EXPECT_FALSE(policy.Seen(99, 101));
}

// Blocks used a few times among many used once: more hits than plain LRU of the same size.
TEST(S3Fifo, HitsMoreThanLruOnASkewedTraceWithScans) {
  constexpr uint64_t kSize = 100;
  Random random(5);
  S3Fifo<int> policy(kSize);
  std::list<int> lru;
  int hits = 0;
  int lru_hits = 0;
  for (int step = 0; step < 50'000; ++step) {
    const int key = step % 2 == 0 ? DrawZipf(random, 2'000) : 10'000 + step;
    std::vector<int> evicted;
    policy.Hit(key) ? ++hits : static_cast<int>(policy.Admit(key, 1, evicted));
    const auto found = std::find(lru.begin(), lru.end(), key);
    if (found != lru.end()) {
      ++lru_hits;
      lru.erase(found);
    } else if (lru.size() == kSize) {
      lru.pop_back();
    }
    lru.push_front(key);
  }
  EXPECT_GT(hits, lru_hits * 5 / 4);
}

}  // namespace
}  // namespace cairn::kv
