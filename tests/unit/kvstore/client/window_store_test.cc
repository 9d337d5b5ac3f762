// Namespaces in memory, beside those of the store behind.
#include "kvstore/client/window_store.h"

#include <gtest/gtest.h>

#include "tests/unit/kvstore/client/store_fixture.h"

namespace cairn::kv {
namespace {

using ::testing::Each;
using testing::HasCode;
using testing::IsOk;

// A store in memory, and one on targets behind it. `window` is a namespace in memory.
class Window {
 public:
  explicit Window(uint64_t bytes_max = 16 * kMiB)
      : store(behind.clock(), behind.store(), behind.stats(), bytes_max) {
    window = behind.Await(store.Attach(Options())).value();
  }
  static NamespaceOptions Options() {
    return {.name = "w", .ttl_seconds = kWindowSecondsDefault, .medium = Medium::kMemory};
  }
  std::vector<Status> Put(const Chain& chain) {
    ChainPut put = behind.PutOf(chain, 0, chain.ids.size());
    put.space = window;
    return behind.Await(store.Put(std::move(put)));
  }
  uint32_t Found(const Chain& chain) {
    return behind.Await(store.Lookup(window, chain.ids, {})).value().blocks;
  }
  Status Get(const Chain& chain, size_t block) {
    Bytes room(chain.bytes[block].size() + 7);
    const MutableByteSpan all = room.span();
    std::vector<BlockRead> reads{
        {.id = chain.ids[block], .scatter = {all.first(5), all.subspan(5)}}};
    const auto results = behind.Await(store.Get(window, chain.ids, std::move(reads), kNever));
    if (!results[0].status.ok()) return results[0].status;
    const ByteSpan wanted = chain.bytes[block].span();
    const bool same = results[0].size == wanted.size() &&
                      results[0].checksum == Checksum(wanted) &&
                      std::equal(wanted.begin(), wanted.end(), room.data());
    return same ? Status() : Status(Code::kCorrupt, "wrong bytes");
  }

  Store behind;
  WindowStore store;
  NamespaceId window;
};

TEST(WindowStore, KeepsBlocksInMemoryForTheirTimeAndNoTargetSeesThem) {
  Window w;
  const Chain chain = w.behind.MakeChain({1, 40'000, 300'000});
  EXPECT_THAT(w.Put(chain), Each(IsOk()));
  EXPECT_EQ(w.Found(chain), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_THAT(w.Get(chain, i), IsOk());
  for (size_t i = 0; i < 12; ++i) EXPECT_EQ(w.behind.target(i).appends, 0);
  EXPECT_EQ(w.behind.Lookup(chain).blocks, 0u);  // Another namespace.
  w.behind.clock().Advance(170'000);
  EXPECT_EQ(w.Found(chain), 3u);  // A hit prolongs.
  w.behind.clock().Advance(170'000);
  EXPECT_THAT(w.Get(chain, 1), IsOk());
  w.behind.clock().Advance(20'000);
  EXPECT_EQ(w.Found(chain), 0u);
  EXPECT_THAT(w.Get(chain, 0), HasCode(Code::kNotFound));
  EXPECT_THAT(w.Get(chain, 1), IsOk());
}

TEST(WindowStore, DeletesAndPutsAgain) {
  Window w;
  Chain chain = w.behind.MakeChain({40'000, 50'000});
  EXPECT_THAT(w.Put(chain), Each(IsOk()));
  EXPECT_THAT(w.behind.Await(w.store.Delete(w.window, chain.ids, 1)), IsOk());
  EXPECT_EQ(w.Found(chain), 1u);
  chain.bytes[1].data()[0] ^= 1;
  EXPECT_THAT(w.Put(chain), Each(IsOk()));
  EXPECT_THAT(w.Get(chain, 1), IsOk());
}

TEST(WindowStore, IsBoundedAndSaysWhatNeverFits) {
  Window w(kMiB);
  const Chain chain = w.behind.MakeChain(std::vector<uint32_t>(20, 100'000));
  EXPECT_THAT(w.Put(chain), Each(IsOk()));
  EXPECT_THAT(w.Get(chain, 0), HasCode(Code::kNotFound));  // Evicted.
  EXPECT_THAT(w.Get(chain, 19), IsOk());
  const Chain large = w.behind.MakeChain({2'000'000});
  EXPECT_THAT(w.Put(large)[0], HasCode(Code::kNoSpace));
}

TEST(WindowStore, PassesOtherNamespacesOn) {
  Window w;
  const Chain chain = w.behind.MakeChain({40'000});
  EXPECT_THAT(w.behind.Await(w.store.Put(w.behind.PutOf(chain, 0, 1))), Each(IsOk()));
  EXPECT_EQ(w.behind.Await(w.store.Lookup(w.behind.space, chain.ids, {})).value().blocks, 1u);
  EXPECT_EQ(w.Found(chain), 0u);
  EXPECT_THAT(w.behind.Get(chain, 0), IsOk());
}

TEST(WindowStore, AttachesOnlyToWhatIsTheSame) {
  Window w;
  EXPECT_EQ(w.behind.Await(w.store.Attach(Window::Options())).value(), w.window);
  NamespaceOptions other = Window::Options();
  other.fingerprint = "other";
  EXPECT_THAT(w.behind.Await(w.store.Attach(other)), HasCode(Code::kConflict));
  other = Window::Options();
  other.medium = Medium::kSsd;
  EXPECT_THAT(w.behind.Await(w.store.Attach(other)), HasCode(Code::kConflict));
  other = Window::Options();
  other.name = "absent";
  other.create = false;
  EXPECT_THAT(w.behind.Await(w.store.Attach(other)), HasCode(Code::kNotFound));
  other.create = true;
  other.ttl_seconds = 0;
  EXPECT_THAT(w.behind.Await(w.store.Attach(other)), HasCode(Code::kInvalid));
}

TEST(WindowStore, AsksForTheTokenOrAProofOfIt) {
  Window w;
  NamespaceOptions guarded = Window::Options();
  guarded.name = "guarded";
  guarded.token = "right";
  const SpaceToken right{.name = "guarded", .token = "right"};
  NamespaceOptions proven = guarded;
  proven.token.clear();
  proven.proof = ProveToken(right, {.server = {1}, .client = {2}});
  EXPECT_THAT(w.behind.Await(w.store.Attach(proven)), HasCode(Code::kInvalid)) << "without a key";
  proven.proof->new_key = StoredKeyOf(right);
  const auto made = w.behind.Await(w.store.Attach(proven));
  ASSERT_THAT(made, IsOk());
  EXPECT_EQ(w.behind.Await(w.store.Attach(guarded)).value(), made.value());
  EXPECT_EQ(w.behind.Await(w.store.Attach(proven)).value(), made.value());
  proven.proof->answer[0] ^= 1;
  EXPECT_THAT(w.behind.Await(w.store.Attach(proven)), HasCode(Code::kConflict));
  guarded.token = "";
  EXPECT_THAT(w.behind.Await(w.store.Attach(guarded)), HasCode(Code::kConflict));
  for (const SpaceInfo& info : w.store.Spaces()) {
    EXPECT_EQ(info.has_token, info.options.name == "guarded");
    EXPECT_FALSE(info.options.proof.has_value());
  }
}

TEST(WindowStore, RefusesWhatMemoryCannotPromise) {
  Window w;
  const Chain chain = w.behind.MakeChain({40'000});
  ChainPut put = w.behind.PutOf(chain, 0, 1);
  put.space = w.window;
  put.keep_until = {1};
  EXPECT_THAT(w.behind.Await(w.store.Put(put)), Each(HasCode(Code::kInvalid)));
  put.keep_until = {};
  put.blocks[0].checksum = 1;
  EXPECT_THAT(w.behind.Await(w.store.Put(put)), Each(HasCode(Code::kCorrupt)));
  EXPECT_EQ(w.Found(chain), 0u);
}

TEST(WindowStore, CountsWhatItIsAskedInTheStoresCounters) {
  Window w;
  const Chain chain = w.behind.MakeChain({1'000, 2'000, 3'000});
  EXPECT_EQ(w.Found(chain), 0u);
  EXPECT_THAT(w.Put(chain), Each(IsOk()));
  EXPECT_EQ(w.Found(chain), 3u);
  EXPECT_THAT(w.Get(chain, 1), IsOk());
  const StoreStats& stats = w.behind.stats();
  EXPECT_EQ(stats.lookups, 2u);
  EXPECT_EQ(stats.lookup_blocks, 6u);
  EXPECT_EQ(stats.lookup_hits, 3u);
  EXPECT_EQ(stats.misses[static_cast<size_t>(MissReason::kAbsent)], 1u);
  EXPECT_EQ(stats.puts_stored, 3u);
  EXPECT_EQ(stats.bytes_put, 6'000u);
  EXPECT_EQ(stats.get_hits, 1u);
  EXPECT_EQ(stats.bytes_got, 2'000u);
}

TEST(WindowStore, ListsAndDeletesItsNamespaces) {
  Window w;
  const Chain chain = w.behind.MakeChain({1'000, 2'000});
  EXPECT_THAT(w.Put(chain), Each(IsOk()));
  EXPECT_THAT(w.store.CreateSpace(Window::Options()), HasCode(Code::kConflict));
  const std::vector<SpaceInfo> spaces = w.store.Spaces();
  ASSERT_EQ(spaces.size(), 1u);
  EXPECT_EQ(spaces[0].options.name, "w");
  EXPECT_EQ(spaces[0].stored_bytes, 3'000u);
  EXPECT_EQ(spaces[0].stripes, 2u);
  EXPECT_THAT(w.store.DeleteSpace("w"), IsOk());
  EXPECT_THAT(w.store.DeleteSpace("w"), HasCode(Code::kNotFound));
  EXPECT_TRUE(w.store.Spaces().empty());
  EXPECT_THAT(w.store.CreateSpace(Window::Options()), IsOk());
  EXPECT_EQ(w.Found(chain), 0u);
}

}  // namespace
}  // namespace cairn::kv
