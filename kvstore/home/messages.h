// What nodes ask the homes of runs, and what homes answer: as structs, with one encoder and parser.
//
// A request is a head and one message; an answer is a head and, when its status is ok, one message.
// Lists have limits on both sides: Encode checks them, Parse refuses.
#pragma once

#include <cstdint>
#include <vector>

#include "kvstore/client/stripe_index.h"

namespace cairn::kv::home {

inline constexpr size_t kStripesMax = 4096;       // Of one message.
inline constexpr size_t kRunBlocksMax = kStripeBlocksMax;
inline constexpr size_t kLeasesMax = 65'536;
inline constexpr uint64_t kAnswerSizeMax = 3 * kMiB;  // Of a run: what does not fit is left out.

enum class Verb : uint8_t {
  kLoad,
  kPublish,
  kRepublish,
  kRemove,
  kKeep,
  kUse,
  kStates,
  kName,
  kGrant,
  kRenew,
  kRelease,
  kEndSession,
};
inline constexpr Verb kVerbLast = Verb::kEndSession;

struct RequestHead {
  Verb verb = Verb::kLoad;
  uint64_t epoch = 0;  // Of the sender's map.
};
struct Empty {};

enum class Extent : uint8_t {
  kWanted,  // As far as it is needed to find what is wanted.
  kAll,     // Of every replica.
  kFiled,   // And what no lookup shows yet.
};
struct LoadRequest {
  RunKey key;
  Extent extent = Extent::kWanted;
  std::vector<BlockId> wanted = {};
};
struct LoadAnswer {
  bool complete = false;
  bool answered_by_all = false;
  std::vector<IndexedStripe> stripes = {};
  std::vector<MissReason> reasons = {};  // Of each block that was wanted.
};
// Of kPublish and kRepublish.
struct FileRequest {
  IndexedStripe stripe = {};
  Durability durability = Durability::kProcess;
};
struct RemoveRequest {
  StripeName name;
  MissReason reason = MissReason::kAbsent;
};
struct KeepRequest {
  StripeName name;
  uint32_t keep_until = 0;
  KeepLimits limits = {};
};
// Of any runs that the home has: hits, and stripes that were published with too few shards.
struct UseRequest {
  struct Hit {
    StripeName name;
    StripeUse use = {};
  };
  std::vector<Hit> hits = {};
  std::vector<StripeId> lacking = {};
};
struct StatesRequest {
  std::vector<StripeId> stripes = {};
};
struct StatesAnswer {
  std::vector<StripeReport> reports = {};
};
struct NameRequest {
  StripeId stripe;
};
struct NameAnswer {
  StripeName name;
};
struct GrantRequest {
  uint64_t session = 0;  // Of the sender: it means nothing to others.
  Nanos duration = {};
  std::vector<LeaseTable::Stripe> stripes = {};
};
struct GrantAnswer {
  LeaseGrant grant = {};
};
struct RenewRequest {
  uint64_t session = 0;
  Nanos duration = {};
  std::vector<LeaseId> leases = {};
};
struct RenewAnswer {
  std::vector<Code> codes = {};  // Of each lease.
};
struct ReleaseRequest {
  uint64_t session = 0;
  std::vector<LeaseId> leases = {};
};
struct EndSessionRequest {
  uint64_t session = 0;
};

template <typename Message>
Bytes EncodeRequest(const RequestHead& head, const Message& message);
// kInvalid when the bytes are no such request.
Result<RequestHead> ParseHead(ByteSpan request);
template <typename Message>
Result<Message> ParseRequest(ByteSpan request);

template <typename Message>
Bytes EncodeAnswer(uint64_t epoch, const Result<Message>& answer);
// What the home said, with the epoch of its map; kUnavailable when the bytes are no such answer.
template <typename Message>
Result<Message> ParseAnswer(ByteSpan answer, uint64_t& epoch);

}  // namespace cairn::kv::home
