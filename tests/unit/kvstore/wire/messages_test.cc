// Bodies: every message comes back as it was, and garbage is refused without harm.
#include "kvstore/wire/messages.h"

#include <gtest/gtest.h>

#include "kvstore/base/random.h"
#include "tests/support/status_matchers.h"

namespace cairn::kv::wire {
namespace {

using cairn::testing::HasCode;
using cairn::testing::IsOk;

Random& Source() {
  static Random random(20);
  return random;
}
template <typename IdType>
IdType AnId() {
  IdType id;
  id.high = Source().Next();
  id.low = Source().Next();
  return id;
}
std::vector<BlockId> AChain(size_t count) {
  std::vector<BlockId> chain;
  for (size_t i = 0; i < count; ++i) chain.push_back(AnId<BlockId>());
  return chain;
}

// Encodes, checks that no shorter and no longer body parses, and gives what parsing gave.
template <typename Message>
Message RoundTrip(const Message& message) {
  const Result<std::vector<uint8_t>> body = Encode(message);
  EXPECT_THAT(body, IsOk());
  std::vector<uint8_t> bytes = body.value();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(Parse<Message>(ByteSpan(bytes).first(size)).ok()) << size;
  }
  bytes.push_back(0);
  EXPECT_THAT(Parse<Message>(bytes), HasCode(Code::kInvalid));
  bytes.pop_back();
  Result<Message> parsed = Parse<Message>(bytes);
  EXPECT_THAT(parsed, IsOk());
  const Result<std::vector<uint8_t>> again = Encode(parsed.value());
  EXPECT_EQ(again.value(), bytes);
  return std::move(parsed).value();
}

template <typename Value>
Value RoundTripAnswer(const Value& value) {
  const std::vector<uint8_t> bytes = EncodeAnswer(Result<Value>(value));
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(ParseAnswer<Value>(ByteSpan(bytes).first(size)).has_value()) << size;
  }
  std::optional<Result<Value>> parsed = ParseAnswer<Value>(bytes);
  EXPECT_TRUE(parsed.has_value() && parsed->ok());
  EXPECT_EQ(EncodeAnswer(*parsed), bytes);
  return std::move(*parsed).value();
}

TEST(Messages, RequestsComeBackAsTheyWere) {
  const HelloRequest hello = RoundTrip(HelloRequest{.lane = LaneKind::kData,
                                                    .session = AnId<Id128>(),
                                                    .name = "engine 7",
                                                    .admin_token = "secret"});
  EXPECT_EQ(hello.name, "engine 7");
  EXPECT_EQ(hello.lane, LaneKind::kData);
  EXPECT_EQ(hello.admin_token, "secret");
  RoundTrip(Empty{});
  EXPECT_EQ(RoundTrip(RegisterRequest{.region = 7, .size = 1 << 20}).region, 7u);
  EXPECT_EQ(RoundTrip(UnregisterRequest{.region = 9}).region, 9u);
  const NamespaceOptions options = RoundTrip(NamespaceOptions{.name = "models",
                                                              .fingerprint = "layout",
                                                              .data_shards = 6,
                                                              .parity_shards = 3,
                                                              .run_blocks = 16,
                                                              .retention = RetentionKind::kFixed,
                                                              .ttl_seconds = 77,
                                                              .medium = Medium::kMemory,
                                                              .quota_bytes = 1ull << 40,
                                                              .create = false});
  EXPECT_EQ(options.quota_bytes, 1ull << 40);
  EXPECT_EQ(options.medium, Medium::kMemory);
  EXPECT_FALSE(options.create);
  EXPECT_FALSE(options.proof.has_value());
  const std::vector<BlockId> chain = AChain(5);
  const auto space = AnId<NamespaceId>();
  EXPECT_EQ(RoundTrip(LookupRequest{.space = space, .chain = chain, .lease = Seconds(3)}).chain,
            chain);
  RoundTrip(LookupEachRequest{.space = space, .chain = chain, .first = 2, .lease = {}});
  EXPECT_EQ(RoundTrip(RenewRequest{.leases = {{1}, {2}}, .lease = Seconds(1)}).leases.size(), 2u);
  RoundTrip(ReleaseRequest{.leases = {{3}}});
  RoundTrip(TouchRequest{.space = space, .chain = chain, .first = 1, .keep_until = {99}});
  RoundTrip(DeleteRequest{.space = space, .chain = chain, .first = 1});
  EXPECT_EQ(RoundTrip(NameRequest{.name = "n"}).name, "n");
  RoundTrip(ListBlocksRequest{.space = space, .cursor = "c", .limit = 10});
  RoundTrip(InspectRequest{.space = space, .chain = chain, .at = 4, .verify = true});
  RoundTrip(RateRequest{.bytes_per_second = 5});
  EXPECT_EQ(RoundTrip(DrainNodeRequest{.node = "node-3", .wanted = Draining::kYes}).node,
            "node-3");
  EXPECT_EQ(RoundTrip(DrainTargetRequest{.target = {1u << 31}, .wanted = Draining::kYes}).wanted,
            Draining::kYes);
}

TEST(Messages, ATokenIsNeverSentItsProofIs) {
  NamespaceOptions options{.name = "guarded", .token = "t"};
  EXPECT_THAT(Encode(options), HasCode(Code::kInvalid));
  options.token.clear();
  TokenProof& proof = options.proof.emplace();
  proof.nonces = {.server = {1}, .client = {2}};
  proof.answer = {3};
  NamespaceOptions there = RoundTrip(options);
  ASSERT_TRUE(there.proof.has_value());
  EXPECT_EQ(there.proof->nonces.server, TokenNonce()) << "the server knows it";
  EXPECT_EQ(there.proof->nonces.client, proof.nonces.client);
  EXPECT_EQ(there.proof->answer, proof.answer);
  EXPECT_FALSE(there.proof->new_key.has_value());
  proof.new_key = StoredKey{{4}};
  there = RoundTrip(options);
  EXPECT_EQ(there.proof->new_key, proof.new_key);
  // What anyone may list shows neither.
  SpaceInfo info;
  info.options = options;
  EXPECT_FALSE(RoundTripAnswer(std::vector<SpaceInfo>{info})[0].options.proof.has_value());
}

TEST(Messages, GetsAndPutsComeBackAsTheyWere) {
  GetRequest get{.space = AnId<NamespaceId>(), .chain = AChain(3), .as_payload = false};
  get.reads.push_back({.id = get.chain[1],
                       .capacity = 8192,
                       .segments = {{.region = 1, .offset = 4096, .size = 4096},
                                    {.region = 2, .offset = 0, .size = 4096}}});
  const GetRequest got = RoundTrip(get);
  ASSERT_EQ(got.reads.size(), 1u);
  EXPECT_EQ(got.reads[0].segments[1].region, 2u);
  PutRequest put{.space = get.space,
                 .chain = get.chain,
                 .first = 1,
                 .ack = Ack::kDurable,
                 .ttl_seconds = 60,
                 .retention = RetentionKind::kFixed,
                 .keep_until = {1234567},
                 .as_payload = true};
  put.blocks.push_back({.id = get.chain[1], .size = 100, .checksum = 42});
  const PutRequest there = RoundTrip(put);
  EXPECT_EQ(there.ttl_seconds, 60u);
  EXPECT_EQ(there.retention, RetentionKind::kFixed);
  EXPECT_EQ(there.blocks[0].checksum, 42u);
  put.ttl_seconds.reset();
  put.retention.reset();
  EXPECT_FALSE(RoundTrip(put).ttl_seconds.has_value());
}

TEST(Messages, SegmentsThatDoNotMakeUpTheSizeAreRefused) {
  GetRequest get{.space = {}, .chain = AChain(1), .as_payload = false};
  get.reads.push_back(
      {.id = get.chain[0], .capacity = 8192, .segments = {{.region = 1, .offset = 0, .size = 1}}});
  EXPECT_THAT(Encode(get), HasCode(Code::kInvalid));
  get.reads[0].segments[0].size = 8192;
  EXPECT_THAT(Encode(get), IsOk());
  get.as_payload = true;
  EXPECT_THAT(Encode(get), HasCode(Code::kInvalid));
  get.as_payload = false;
  get.reads[0].capacity = 2 * (kScatterMax + 1);
  get.reads[0].segments.assign(kScatterMax + 1, {.region = 1, .offset = 0, .size = 2});
  EXPECT_THAT(Encode(get), HasCode(Code::kInvalid));
}

TEST(Messages, AnswersComeBackAsTheyWere) {
  RoundTripAnswer(Empty{});
  EXPECT_EQ(RoundTripAnswer(HelloAnswer{.session = AnId<Id128>(),
                                        .requests_max = 5,
                                        .session_timeout_nanos = 10})
                .requests_max,
            5u);
  EXPECT_EQ(RoundTripAnswer(Challenge{.nonce = {9}}).nonce, TokenNonce{9});
  const auto space = AnId<NamespaceId>();
  EXPECT_EQ(RoundTripAnswer(space), space);
  const ChainHit hit = RoundTripAnswer(ChainHit{.blocks = 2,
                                                .miss = MissReason::kExpired,
                                                .sizes = {10, 20},
                                                .load_estimate = Micros(7),
                                                .lease = {77},
                                                .lease_for = Seconds(2)});
  EXPECT_EQ(hit.sizes[1], 20u);
  EXPECT_EQ(hit.lease.value, 77u);
  EachHit each;
  each.blocks = {{.size = 5}, {.size = 0, .miss = MissReason::kEvicted}};
  EXPECT_EQ(RoundTripAnswer(each).blocks[1].miss, MissReason::kEvicted);
  GetAnswer got;
  got.blocks = {{.status = {}, .size = 7, .checksum = 9}, {.status = Status(Code::kNotFound)}};
  EXPECT_EQ(RoundTripAnswer(got).blocks[1].status.code(), Code::kNotFound);
  const std::vector<Status> statuses{Status(), Status(Code::kOverloaded, "busy")};
  EXPECT_EQ(RoundTripAnswer(statuses)[1].message(), "busy");
  TargetInfo target;
  target.label = "target-03";
  target.shards = 8;
  EXPECT_EQ(RoundTripAnswer(std::vector<TargetInfo>{target})[0].label, "target-03");
  SpaceInfo info;
  info.id = space;
  info.stored_bytes = 1;
  EXPECT_EQ(RoundTripAnswer(std::vector<SpaceInfo>{info})[0].id, space);
  BlockPage page;
  page.blocks.emplace_back().id = AnId<BlockId>();
  page.next = "more";
  EXPECT_EQ(RoundTripAnswer(page).next, "more");
  RoundTripAnswer(MaintenanceStatus{.running = true, .passes = 4});
}

TEST(Messages, AClusterComesBackAsItWas) {
  ClusterInfo cluster;
  cluster.name = "cairn";
  cluster.self = {4};
  cluster.epoch = 17;
  cluster.groups_homeless = 2;
  cluster.control = Status(Code::kUnavailable, "away");
  cluster.nodes.push_back({.id = {4}, .name = "node-3", .rack = "r1", .addresses = {"a:1", "b:2"}});
  cluster.nodes.back().state = MemberState::kLost;
  cluster.nodes.back().draining = true;
  ClusterTargetInfo& target = cluster.targets.emplace_back();
  target.id = {77};
  target.node = {4};
  target.groups = 5;
  target.vacated = true;
  const ClusterInfo there = RoundTripAnswer(cluster);
  EXPECT_EQ(there.nodes, cluster.nodes);
  EXPECT_EQ(there.control.message(), "away");
  EXPECT_EQ(there.targets[0].groups, 5u);
  EXPECT_TRUE(there.targets[0].vacated);
  EXPECT_EQ(there.coordinator, kNoNode);
}

TEST(Messages, CountersTravelByName) {
  StoreStats stats;
  uint64_t value = 100;
  VisitStats(stats, [&value](std::string_view, StatKind, uint64_t& field, const char*) {
    field = value++;
  });
  const auto there = ParseAnswer<StoreStats>(EncodeAnswer(Result<StoreStats>(stats)));
  ASSERT_TRUE(there.has_value() && there->ok());
  EXPECT_EQ(there->value().puts, stats.puts);
  EXPECT_EQ(there->value().misses, stats.misses);
  EXPECT_EQ(there->value().memory_bytes, stats.memory_bytes);
}

TEST(Messages, AnErrorComesBackWithItsWords) {
  const Result<ChainHit> error(Status(Code::kConflict, "somebody else has it"));
  const auto there = ParseAnswer<ChainHit>(EncodeAnswer(error));
  ASSERT_TRUE(there.has_value());
  EXPECT_THAT(*there, HasCode(Code::kConflict));
  EXPECT_EQ(there->status().message(), "somebody else has it");
}

TEST(Messages, TheLongestListOfStatusesFitsAnAnswer) {
  const std::vector<Status> many(kChainBlocksMax, Status(Code::kInvalid, std::string(4000, 'x')));
  const auto there = ParseAnswer<std::vector<Status>>(EncodeAnswer(Result(many)));
  ASSERT_TRUE(there.has_value() && there->ok());
  EXPECT_EQ(there->value().size(), many.size());
}

TEST(Messages, GarbageIsRefusedOrParsed) {
  // Random bytes, and bytes that begin with small counts: so more than the first field is read.
  for (int round = 0; round < 20'000; ++round) {
    std::vector<uint8_t> body(Source().Below(200));
    Source().Fill(body);
    if (round % 2 == 0) {
      for (uint8_t& byte : body) byte &= static_cast<uint8_t>(0x01 | (byte >> 7 ? 0xff : 0));
    }
    const auto verb = static_cast<Verb>(Source().Below(80));
    const Status request = ParseAny(verb, Direction::kRequest, body);
    const Status answer = ParseAny(verb, Direction::kAnswer, body);
    EXPECT_TRUE(request.ok() || request.code() == Code::kInvalid);
    EXPECT_TRUE(answer.ok() || answer.code() == Code::kInvalid);
  }
}

TEST(Messages, AListLongerThanItsBodyTakesNoMemory) {
  // A chain of 65,536 ids that the body does not hold: refused before anything is allocated.
  std::vector<uint8_t> body(16, 0);
  const std::vector<uint8_t> count{0x00, 0x00, 0x01, 0x00};
  body.insert(body.end(), count.begin(), count.end());
  EXPECT_THAT(Parse<LookupRequest>(body), HasCode(Code::kInvalid));
}

}  // namespace
}  // namespace cairn::kv::wire
