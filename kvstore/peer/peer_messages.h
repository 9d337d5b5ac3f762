// The requests and answers between nodes, as structs and as bytes (docs/formats/peer.md). Pure.
//
// A request's body is a head and the message of its verb; an answer's a head, a Status, and, when
// that is ok, the value. Payload (shards) travels beside the body.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "kvstore/client/target_port.h"
#include "kvstore/types/limits.h"

namespace cairn::kv::peer {

// A node speaks these versions; a request says of which it is, and is answered in the same. What is
// the same in all of them is of the lowest. 2: kAppend brings the shard's checksum.
inline constexpr uint16_t kVersionMin = 1;
inline constexpr uint16_t kVersion = 2;
inline constexpr uint16_t kVersionOfChecksums = 2;

// Numbers are never used again. Below kGetMap a request is for one target.
enum class Verb : uint8_t {
  kAppend = 1,
  kRead = 2,
  kReadVerified = 3,
  kDrop = 4,
  kSync = 5,
  kHolds = 6,
  kPublish = 16,
  kLookUp = 17,
  kWithdraw = 18,
  kTouch = 19,
  kSaveUse = 20,
  kNameOf = 21,
  kListFiled = 22,
  kSaveSpace = 23,
  kListSpaces = 24,
  kProbe = 25,
  kSaveRemoval = 26,
  kReadFiled = 27,
  kGetMap = 32,
  kAskHome = 33,
};

inline constexpr uint32_t kBatchMax = 4096;  // Of stripes in one request, and of one page.
inline constexpr uint32_t kRunStripesMax = 4096;
inline constexpr uint64_t kPageBytesMax = 2 * kMiB;  // Of namespaces.

struct RequestHead {
  uint16_t version = kVersionMin;
  Verb verb = Verb::kProbe;
  uint64_t epoch = 0;        // Of the sender's map.
  int64_t budget_nanos = 0;  // After so long nobody waits for the answer.
  TargetId target = {};      // 0 for kGetMap and kAskHome, and for a kProbe of the node itself.
};
inline constexpr size_t kRequestHeadSize = 27;

struct AnswerHead {
  uint64_t epoch = 0;        // Of the answering node's map.
  uint64_t free_bytes = 0;   // Of the target, as are the operations in flight.
  uint32_t queue_depth = 0;
};

// The payload is the shard.
struct AppendRequest {
  Manifest manifest = {};
  ShardIndex index = {};
  uint64_t checksum = 0;  // Of the payload: it may be damaged on its way.
};
struct AppendRequestV1 {
  Manifest manifest = {};
  ShardIndex index = {};
};
// The answer's payload is the range: whole sectors.
struct ReadRequest {
  StripeId stripe = {};
  ShardIndex index = {};
  uint32_t offset = 0;
  uint32_t size = 0;
  std::optional<uint64_t> checksum = {};
  uint32_t checked_size = 0;
};
struct ReadVerifiedRequest {
  StripeId stripe = {};
  ShardIndex index = {};
  uint32_t size = 0;  // The shard's.
};
struct ShardName {
  StripeId stripe = {};
  ShardIndex index = {};
};
// A status for each shard, in order: ok or kNotFound.
struct HoldsRequest {
  std::vector<ShardName> shards = {};
};
// A status for each stripe, in order; so for kWithdraw.
struct DropRequest {
  std::vector<StripeId> stripes = {};
};
struct SyncRequest {};
struct PublishRequest {
  IndexedStripe stripe = {};
  Durability durability = Durability::kProcess;
};
struct LookUpRequest {
  NamespaceId space = {};
  RunId run = {};
};
struct ReadFiledRequest {
  StripeId stripe = {};
};
struct WithdrawRequest {
  std::vector<StripeName> names = {};
};
struct TouchRequest {
  std::vector<std::pair<StripeId, StripeUse>> hits = {};
};
struct SaveUseRequest {
  StripeId stripe = {};
  std::optional<StripeUse> use = {};  // A hit that comes with it.
};
struct SaveRemovalRequest {
  StripeId stripe = {};
};
struct NameOfRequest {
  StripeId stripe = {};
};
struct ListFiledRequest {
  std::optional<StripeId> after = {};
  uint32_t limit = 0;
};
struct SaveSpaceRequest {
  SpaceRecord record = {};
};
struct ListSpacesRequest {
  uint32_t first = 0;  // How many to leave out.
};
struct SpacePage {
  std::vector<SpaceRecord> records = {};
  bool more = false;
};
struct ProbeRequest {};
// The answer's payload is the map, if it is at most `room`.
struct GetMapRequest {
  uint32_t room = 0;
};
struct MapSize {
  uint32_t bytes = 0;
};
// What kvstore/home asks of the node as a home, and what that answers.
struct HomeRequest {
  Bytes bytes = {};
};
struct HomeAnswer {
  Bytes bytes = {};
};
struct Nothing {};  // The value of verbs that only succeed.

// For every ...Request above. kInvalid: something in it is beyond the limits.
template <typename Message>
Result<std::vector<uint8_t>> Encode(const Message& message);
template <typename Message>
Result<Message> Parse(ByteSpan fields);

Bytes EncodeRequest(const RequestHead& head, ByteSpan message);
// The head and the message's fields. kInvalid: too short, or an unknown verb. kConflict: of a
// version that is not spoken.
Result<std::pair<RequestHead, ByteSpan>> ParseRequest(ByteSpan body,
                                                      uint16_t version_max = kVersion);

// For Nothing, HomeAnswer, MapSize, SpacePage, StripeName and vectors of Status, IndexedStripe and
// TargetPort::Filed. What is beyond the limits becomes an answer that says so.
template <typename Value>
Bytes EncodeAnswer(const AnswerHead& head, const Result<Value>& answer);
// kInvalid when the body is no such answer.
Result<std::pair<AnswerHead, ByteSpan>> ParseAnswerHead(ByteSpan body);
template <typename Value>
Result<Value> ParseAnswer(ByteSpan fields);

// Parses a request's message as what the head says, for fuzzers.
Status ParseAny(const RequestHead& head, ByteSpan fields);

}  // namespace cairn::kv::peer
