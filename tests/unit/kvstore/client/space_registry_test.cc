// Who a namespace is, who may attach, and that deletion is for good.
#include "kvstore/client/space_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace cairn::kv {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::HasCode;
using testing::IsOk;

constexpr UnixMillis kNow{1'000'000};

class SpaceRegistryTest : public ::testing::Test {
 protected:
  static NamespaceOptions Options() { return {.name = "n", .fingerprint = "secret shape"}; }
  Random random{1};
  SpaceRegistry registry{random};
};

TEST_F(SpaceRegistryTest, ANameCreatedAgainIsAnotherNamespace) {
  const SpaceRecord first = registry.Create(Options(), kNow);
  EXPECT_EQ(registry.Find(first.id)->name, "n");
  (void)registry.Bury(first.id, kNow);
  EXPECT_EQ(registry.Find(first.id), nullptr);
  EXPECT_EQ(registry.FindName("n"), nullptr);
  EXPECT_THAT(registry.WhyNot(first.id), HasCode(Code::kNotFound));
  const SpaceRecord second = registry.Create(Options(), kNow);
  EXPECT_NE(second.id, first.id);
  EXPECT_TRUE(registry.IsDeleted(first.id));
  EXPECT_EQ(registry.FindName("n")->id, second.id);
}

TEST_F(SpaceRegistryTest, WhenAllRecordsAreLostTheFirstGenerationIsFoundAgainByWhoKnowsItsToken) {
  NamespaceOptions options = Options();
  options.token = "right";
  const SpaceRecord record = registry.Create(options, kNow);
  SpaceRegistry lost(random);
  EXPECT_EQ(lost.Create(options, kNow).id, record.id);
  for (const char* wrong : {"", "wrong"}) {
    SpaceRegistry other(random);
    options.token = wrong;
    EXPECT_NE(other.Create(options, kNow).id, record.id) << wrong;
  }
}

TEST_F(SpaceRegistryTest, AWrongTokenSaysNothingOfTheNamespace) {
  NamespaceOptions options = Options();
  options.token = "right";
  const SpaceRecord record = registry.Create(options, kNow);
  EXPECT_THAT(SpaceRegistry::CheckAttach(record, options), IsOk());
  for (const char* wrong : {"", "wrong", "righ", "right "}) {
    options.token = wrong;
    options.fingerprint = "another";
    const Status refused = SpaceRegistry::CheckAttach(record, options);
    EXPECT_THAT(refused, HasCode(Code::kConflict)) << wrong;
    EXPECT_THAT(refused.message(), Not(HasSubstr("secret shape")));
    EXPECT_THAT(refused.message(), Not(HasSubstr("10+2")));
  }
  NamespaceOptions open = Options();
  open.name = "open";
  const SpaceRecord unguarded = registry.Create(open, kNow);
  open.token = "any";
  EXPECT_THAT(SpaceRegistry::CheckAttach(unguarded, open), HasCode(Code::kConflict));
}

// In place of the token, as a server gets it of a client.
NamespaceOptions Proven(NamespaceOptions options, bool with_key) {
  const SpaceToken known{.name = options.name, .token = options.token};
  options.proof = ProveToken(known, {.server = {1}, .client = {2}});
  if (with_key) options.proof->new_key = StoredKeyOf(known);
  options.create = with_key;
  options.token.clear();
  return options;
}

TEST_F(SpaceRegistryTest, AProofCreatesAndAttachesAsTheTokenDoes) {
  NamespaceOptions options = Options();
  options.token = "right";
  const SpaceRecord by_token = registry.Create(options, kNow);
  SpaceRegistry other(random);
  const NamespaceOptions proven = Proven(options, true);
  ASSERT_THAT(CheckOptions(proven), IsOk());
  const SpaceRecord by_proof = other.Create(proven, kNow);
  EXPECT_EQ(by_proof, by_token);
  EXPECT_THAT(SpaceRegistry::CheckAttach(by_token, Proven(options, false)), IsOk());
  EXPECT_THAT(SpaceRegistry::CheckAttach(by_proof, options), IsOk());
  options.token = "wrong";
  for (const bool with_key : {false, true}) {
    EXPECT_THAT(SpaceRegistry::CheckAttach(by_token, Proven(options, with_key)),
                HasCode(Code::kConflict));
  }
  const SpaceRecord unguarded = SpaceRegistry(random).Create(Options(), kNow);
  EXPECT_THAT(SpaceRegistry::CheckAttach(unguarded, Proven(options, true)),
              HasCode(Code::kConflict));
}

TEST_F(SpaceRegistryTest, WhoHasOnlyAStoredKeyNeitherCreatesNorAttaches) {
  NamespaceOptions options = Options();
  options.token = "right";
  const SpaceRecord stolen = registry.Create(options, kNow);
  options.token = "wrong";
  NamespaceOptions thief = Proven(options, true);
  thief.proof->new_key = stolen.token_key;
  EXPECT_THAT(CheckOptions(thief), HasCode(Code::kInvalid));
  EXPECT_THAT(SpaceRegistry::CheckAttach(stolen, thief), HasCode(Code::kConflict));
  thief.proof->new_key.reset();
  EXPECT_THAT(CheckOptions(thief), HasCode(Code::kInvalid)) << "it would have no token";
  thief.create = false;
  EXPECT_THAT(CheckOptions(thief), IsOk());
  thief.token = "both";
  EXPECT_THAT(CheckOptions(thief), HasCode(Code::kInvalid));
}

TEST_F(SpaceRegistryTest, AnotherShapeIsAConflictThatShowsBoth) {
  const SpaceRecord record = registry.Create(Options(), kNow);
  NamespaceOptions other = Options();
  other.data_shards = 4;
  const Status refused = SpaceRegistry::CheckAttach(record, other);
  EXPECT_THAT(refused, HasCode(Code::kConflict));
  EXPECT_THAT(refused.message(), HasSubstr("10+2"));
  EXPECT_THAT(refused.message(), HasSubstr("4+2"));
  other = Options();
  other.medium = Medium::kMemory;
  EXPECT_THAT(SpaceRegistry::CheckAttach(record, other), HasCode(Code::kConflict));
  // Policy is the namespace's own.
  other = Options();
  other.ttl_seconds = 5;
  other.quota_bytes = 17;
  EXPECT_THAT(SpaceRegistry::CheckAttach(record, other), IsOk());
}

TEST_F(SpaceRegistryTest, ATombstoneWinsInWhicheverOrderTargetsListThem) {
  const SpaceRecord record = registry.Create(Options(), kNow);
  const SpaceRecord tombstone = registry.Bury(record.id, kNow);
  EXPECT_TRUE(tombstone.fingerprint.empty());
  for (const bool tombstone_first : {false, true}) {
    SpaceRegistry other(random);
    other.Load(tombstone_first ? tombstone : record, kNow);
    other.Load(tombstone_first ? record : tombstone, kNow);
    EXPECT_EQ(other.FindName("n"), nullptr);
    EXPECT_TRUE(other.IsDeleted(record.id));
    EXPECT_EQ(other.All().size(), 1u);
  }
}

TEST_F(SpaceRegistryTest, OfTwoThatLiveUnderOneNameTheLaterLives) {
  SpaceRegistry source(random);
  const SpaceRecord old = source.Create(Options(), kNow);
  (void)source.Bury(old.id, kNow);
  const SpaceRecord young = source.Create(Options(), {kNow.value + 1});
  for (const bool old_first : {false, true}) {
    SpaceRegistry other(random);
    other.Load(old_first ? old : young, kNow);
    other.Load(old_first ? young : old, kNow);
    EXPECT_EQ(other.FindName("n")->id, young.id);
    EXPECT_EQ(other.Find(old.id), nullptr);
    EXPECT_FALSE(other.IsDeleted(old.id)) << "nobody deleted it";
    EXPECT_EQ(other.List().size(), 1u);
  }
}

TEST(CheckOptions, NamesWhatIsWrong) {
  EXPECT_THAT(CheckOptions({.name = ""}), HasCode(Code::kInvalid));
  EXPECT_THAT(CheckOptions({.name = std::string(129, 'x')}), HasCode(Code::kInvalid));
  EXPECT_THAT(CheckOptions({.name = "n", .data_shards = 0}), HasCode(Code::kInvalid));
  EXPECT_THAT(CheckOptions({.name = "n", .parity_shards = 9}), HasCode(Code::kInvalid));
  EXPECT_THAT(CheckOptions({.name = "n", .run_blocks = 0}), HasCode(Code::kInvalid));
  EXPECT_THAT(CheckOptions({.name = "n", .ttl_seconds = 0}), HasCode(Code::kInvalid));
  EXPECT_THAT(CheckOptions({.name = "n"}), IsOk());
}

}  // namespace
}  // namespace cairn::kv
