// Keys in text, hex and as ids.
#include "tools/cairn/keys.h"

#include <gmock/gmock.h>

#include "tests/support/status_matchers.h"

namespace cairn::tools {
namespace {

using ::testing::HasSubstr;
using kv::BlockId;
using testing::HasCode;

constexpr const char* kId = "0123456789abcdef0011223344556677";
constexpr const char* kRun = "ffffffffffffffff0000000000000001";

TEST(ParseKey, TextAndHexAreTheSameKey) {
  const std::vector<uint8_t> bytes = {'h', 'i'};
  const std::vector<BlockId> chain = {kv::BlockIdOf(bytes)};
  EXPECT_EQ(ParseKey({.key = "hi"}).value(), chain);
  EXPECT_EQ(ParseKey({.key = "6869", .hex = true}).value(), chain);
}

TEST(ParseKey, IdsComeBackAsTheyArePrinted) {
  const BlockId id{{0x0123456789abcdef, 0x0011223344556677}};
  const BlockId leader{{0xffffffffffffffff, 1}};
  EXPECT_EQ(ParseKey({.key = kId, .id = true}).value(), std::vector<BlockId>{id});
  const std::string name = BlockName(id, kv::RunId{leader});
  EXPECT_EQ(name, std::string(kRun) + "/" + kId);
  EXPECT_EQ(ParseKey({.key = name, .id = true}).value(), (std::vector<BlockId>{leader, id}));
  EXPECT_EQ(BlockName(id, kv::RunId{id}), kId);
}

TEST(ParseKey, RefusesWhatIsNone) {
  EXPECT_THAT(ParseKey({.key = ""}), HasCode(kv::Code::kInvalid));
  EXPECT_THAT(ParseKey({.key = std::string(513, 'x')}), HasCode(kv::Code::kInvalid));
  EXPECT_THAT(ParseKey({.key = "123", .hex = true}), HasCode(kv::Code::kInvalid));
  EXPECT_THAT(ParseKey({.key = "zz", .hex = true}), HasCode(kv::Code::kInvalid));
  for (const std::string& text :
       {std::string("12"), std::string(kId) + "0", std::string(kId) + "/", std::string("/") + kId,
        std::string(31, '0') + "g"}) {
    EXPECT_THAT(ParseKey({.key = text, .id = true}), HasCode(kv::Code::kInvalid)) << text;
  }
}

}  // namespace
}  // namespace cairn::tools
