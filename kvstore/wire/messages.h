// The bodies of requests and answers, as structs, with one encoder and one parser for each.
//
// An answer's body is a Status, and, when that is ok, the value. Vectors and texts have limits on
// both sides: Encode checks (what exceeds them must be split or refused before), Parse refuses.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kvstore/client/block_store.h"
#include "kvstore/client/store_admin.h"
#include "kvstore/control/cluster_admin.h"
#include "kvstore/wire/frame.h"

namespace cairn::kv::wire {

inline constexpr uint16_t kVersion = 2;
inline constexpr uint64_t kFeatureSharedMemory = 1;
inline constexpr uint64_t kFeatures = kFeatureSharedMemory;

inline constexpr uint32_t kChainBlocksMax = 65'536;
inline constexpr uint32_t kBlocksMax = 4096;      // Of one get or put.
inline constexpr uint32_t kSegmentsMax = 65'536;  // Of one get or put, over all its blocks.
inline constexpr uint32_t kLeasesMax = 65'536;
inline constexpr uint32_t kTextMax = 8192;
inline constexpr uint32_t kPageBlocksMax = 10'000;

enum class LaneKind : uint8_t { kControl = 0, kData = 1 };

struct HelloRequest {
  uint16_t version_min = kVersion;
  uint16_t version_max = kVersion;
  uint64_t features = kFeatures;
  LaneKind lane = LaneKind::kControl;
  Id128 session = {};  // Of a data lane: what the control lane's answer said.
  std::string name = {};
  std::string admin_token = {};
};
struct HelloAnswer {
  uint16_t version = kVersion;
  uint64_t features = 0;  // Those that both have.
  Id128 session = {};          // A secret: it binds data lanes.
  uint32_t requests_max = 0;
  uint64_t session_bytes_max = 0;
  uint32_t regions_max = 0;
  uint64_t region_bytes_max = 0;
  int64_t session_timeout_nanos = 0;
};

struct Empty {};

// What the next proof on this connection answers to.
struct Challenge {
  TokenNonce nonce{};
};

// The descriptor comes with the frame, as SCM_RIGHTS.
struct RegisterRequest {
  uint32_t region = 0;  // Chosen by the client; not in use.
  uint64_t size = 0;    // Whole sectors.
};
struct UnregisterRequest {
  uint32_t region = 0;
};

struct LookupRequest {
  NamespaceId space = {};
  std::vector<BlockId> chain = {};
  Nanos lease = {};
};
struct LookupEachRequest {
  NamespaceId space = {};
  std::vector<BlockId> chain = {};
  uint32_t first = 0;
  Nanos lease = {};
};
struct RenewRequest {
  std::vector<LeaseId> leases = {};
  Nanos lease = {};
};
struct ReleaseRequest {
  std::vector<LeaseId> leases = {};
};

// A part of registered memory.
struct Segment {
  uint32_t region = 0;
  uint64_t offset = 0;
  uint32_t size = 0;
};

struct GetRequest {
  struct Read {
    BlockId id = {};
    uint32_t capacity = 0;  // Bytes that the client can take.
    std::vector<Segment> segments = {};
  };
  NamespaceId space = {};
  std::vector<BlockId> chain = {};
  // Payload: the answer brings the blocks, one after another, those that are ok. Otherwise the
  // server puts them into the segments, whose sizes make up the capacity.
  bool as_payload = false;
  std::vector<Read> reads = {};
};
struct GetAnswer {
  struct Block {
    Status status = {};
    uint32_t size = 0;
    uint64_t checksum = 0;  // XXH3-64, when ok and as payload.
  };
  std::vector<Block> blocks = {};
};

struct PutRequest {
  struct Block {
    BlockId id = {};
    uint32_t size = 0;
    uint64_t checksum = 0;          // XXH3-64 of the bytes that the client means.
    std::vector<Segment> segments = {};  // Empty: the bytes are payload.
  };
  NamespaceId space = {};
  std::vector<BlockId> chain = {};
  uint32_t first = 0;
  Ack ack = Ack::kCached;
  std::optional<uint32_t> ttl_seconds = {};
  std::optional<RetentionKind> retention = {};
  UnixMillis keep_until = {};
  bool as_payload = false;
  std::vector<Block> blocks = {};
};

struct TouchRequest {
  NamespaceId space = {};
  std::vector<BlockId> chain = {};
  uint32_t first = 0;
  UnixMillis keep_until = {};
};
struct DeleteRequest {
  NamespaceId space = {};
  std::vector<BlockId> chain = {};
  uint32_t first = 0;
};

struct NameRequest {
  std::string name = {};
};
struct ListBlocksRequest {
  NamespaceId space = {};
  std::string cursor = {};
  uint32_t limit = 0;
};
struct InspectRequest {
  NamespaceId space = {};
  std::vector<BlockId> chain = {};
  uint32_t at = 0;
  bool verify = false;
};
struct RateRequest {
  uint64_t bytes_per_second = 0;
};
struct DrainNodeRequest {
  std::string node = {};
  Draining wanted = Draining::kNo;
};
struct DrainTargetRequest {
  TargetId target = {};
  Draining wanted = Draining::kNo;
};

// For every struct above, and for NamespaceOptions (the body of kAttach and kCreateSpace): these
// with a proof at most, whose server nonce is not sent, and never with a token.
// kInvalid: something in it is beyond the limits.
template <typename Message>
Result<std::vector<uint8_t>> Encode(const Message& message);
// kInvalid: too short, too long, or a field that Encode would not have written.
template <typename Message>
Result<Message> Parse(ByteSpan body);

// For Empty, HelloAnswer, Challenge, GetAnswer and what the verbs of BlockStore, StoreAdmin and
// ClusterAdmin return: NamespaceId, ChainHit, EachHit, std::vector<Status>, StoreStats, ....
// What is beyond the limits becomes an answer that says so. Messages of statuses may be cut.
template <typename Value>
std::vector<uint8_t> EncodeAnswer(const Result<Value>& answer);
// What the peer answered; nothing for a body that is no such answer.
template <typename Value>
std::optional<Result<Value>> ParseAnswer(ByteSpan body);

// Parses the body as what the verb says, for fuzzers: ok, or kInvalid.
Status ParseAny(Verb verb, Direction direction, ByteSpan body);

}  // namespace cairn::kv::wire
