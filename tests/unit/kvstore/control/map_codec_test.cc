// Maps to bytes and back; damage is found; small changes change few parts.
#include "kvstore/control/map_codec.h"

#include "tests/unit/kvstore/control/cluster_builder.h"

namespace cairn::kv {
namespace {

MapContent RichContent() {
  MapContent content = PlannedCluster({.racks = 3});
  content.nodes[2].draining = true;
  content.nodes[3].addresses = {"a:1", "b:2"};
  content.targets[5].state = MemberState::kSuspect;
  content.targets[6].draining = true;
  content.targets[7].weight_percent = 30;
  content.targets[7].since = 2;
  content.groups[8].filling = 5;
  content.groups[9].targets[2] = kNoTarget;
  return content;
}

TEST(MapCodec, WhatIsEncodedComesBack) {
  const MapContent content = RichContent();
  const auto back = DecodeWholeMap(EncodeWholeMap(*MapOf(content)));
  ASSERT_TRUE(back.ok()) << back.status().ToString();
  EXPECT_EQ(back.value()->content(), content);
  const MapContent empty = EmptyMap({}).value();
  EXPECT_EQ(DecodeWholeMap(EncodeWholeMap(*MapOf(empty))).value()->content(), empty);
}

TEST(MapCodec, EveryDamagedByteIsFound) {
  MapContent content =
      PlannedCluster({.nodes = 4, .targets_per_node = 1, .shape = {.group_bits = 4}});
  std::string bytes = EncodeWholeMap(*MapOf(content));
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x11);
    const auto back = DecodeWholeMap(damaged);
    EXPECT_EQ(back.code(), Code::kCorrupt) << "byte " << i;
    EXPECT_FALSE(DecodeWholeMap(std::string_view(bytes).substr(0, i)).ok()) << "cut at " << i;
  }
  EXPECT_FALSE(DecodeWholeMap(bytes + "x").ok());
}

TEST(MapCodec, PartsMustBeThoseThatTheHeadNames) {
  const EncodedMap encoded = EncodeMap(*MapOf(RichContent()));
  const MapHead head = DecodeMapHead(encoded.head).value();
  std::vector<std::string_view> parts;
  for (const MapPart& part : encoded.parts) parts.push_back(part.bytes);
  EXPECT_TRUE(DecodeMap(head, parts).ok());
  std::swap(parts[0], parts[1]);
  EXPECT_EQ(DecodeMap(head, parts).code(), Code::kCorrupt);
  parts.pop_back();
  EXPECT_EQ(DecodeMap(head, parts).code(), Code::kCorrupt);
}

TEST(MapCodec, ASmallChangeChangesOnePart) {
  MapContent content = PlannedCluster({.nodes = 600, .targets_per_node = 8});
  const EncodedMap before = EncodeMap(*MapOf(content));
  ++content.epoch;
  content.nodes[300].state = MemberState::kSuspect;
  const EncodedMap after = EncodeMap(*MapOf(content));
  ASSERT_EQ(before.parts.size(), after.parts.size());
  uint32_t changed = 0;
  for (size_t i = 0; i < before.parts.size(); ++i) {
    changed += before.parts[i].name != after.parts[i].name ? 1 : 0;
  }
  EXPECT_EQ(changed, 1u);
  EXPECT_NE(before.head, after.head);
}

}  // namespace
}  // namespace cairn::kv
