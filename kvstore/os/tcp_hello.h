// How two nodes introduce themselves on a new connection, TCP or RDMA, and prove that both know the
// cluster's secret. docs/formats/peer.md tells it in order.
//
//   caller:   offer (nonce)   --->
//                             <---   welcome (nonce, proof)
//             proof           --->   then frames
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "kvstore/base/bytes.h"
#include "kvstore/base/hmac.h"
#include "kvstore/base/result.h"
#include "kvstore/io/network.h"

namespace cairn::kv {

class TlsContext;

// Versions of frames and hello that a node speaks. The highest that both have is taken, so that
// nodes of two releases work side by side while a cluster is upgraded.
struct VersionRange {
  uint16_t min = 2;
  uint16_t max = 2;
};

// Small calls, and calls with payload: a lookup never queues behind blocks.
enum class ConnectionRole : uint8_t { kControl = 0, kData = 1 };

using Nonce = std::array<uint8_t, 32>;
using ClusterDigest = Sha256Digest;  // Of the cluster's name.

struct HelloOffer {
  VersionRange versions;
  ConnectionRole role = ConnectionRole::kControl;
  NodeId caller;
  NodeId callee;  // Whom the caller means to reach.
  ClusterDigest cluster{};
  Nonce nonce{};
};
inline constexpr size_t kOfferSize = 84;
using OfferBytes = std::array<uint8_t, kOfferSize>;

enum class HelloRefusal : uint8_t {
  kNone = 0,
  kVersion = 1,  // No version that both speak.
  kCluster = 2,  // Of another cluster.
  kNode = 3,     // Not the node that the caller means.
};
std::string_view RefusalText(HelloRefusal refusal);

struct HelloWelcome {
  HelloRefusal refusal = HelloRefusal::kNone;
  uint16_t version = 0;
  NodeId callee;
  Nonce nonce{};
  Sha256Digest proof{};  // Zero in a refusal.
};
inline constexpr size_t kWelcomeSize = 76;
using WelcomeBytes = std::array<uint8_t, kWelcomeSize>;

OfferBytes EncodeOffer(const HelloOffer& offer);
WelcomeBytes EncodeWelcome(const HelloWelcome& welcome);
// kInvalid for anything that the encoders would not have made.
Result<HelloOffer> ParseOffer(const OfferBytes& bytes);
Result<HelloWelcome> ParseWelcome(const WelcomeBytes& bytes);

// The highest version in both; nothing when there is none.
std::optional<uint16_t> CommonVersion(VersionRange a, VersionRange b);

// What each side sends to show that it knows the secret. It covers all that both have said, so
// that no proof serves on another connection, for the other side, or after a byte was changed.
Sha256Digest CalleeProof(const std::string& secret, const OfferBytes& offer,
                         const WelcomeBytes& welcome);
Sha256Digest CallerProof(const std::string& secret, const OfferBytes& offer,
                         const WelcomeBytes& welcome);

// --- The two sides, for any transport -----------------------------------------------------------

// Who this node is to others. Constant.
struct NodeIdentity {
  NodeId self;
  ClusterDigest cluster{};
  std::string secret;
  VersionRange versions;
  std::shared_ptr<const TlsContext> tls = {};  // Null: none.
};

// How a hello went. On anything but kOk the connection is of no use.
struct HelloOutcome {
  enum class Kind : uint8_t {
    kOk,
    kEnded,
    kMalformed,
    kRefused,   // By one side or the other: the reason says what does not fit.
    kUnproven,  // The peer does not know the cluster's secret, or its certificate is not good.
  };
  static HelloOutcome Ended();
  static HelloOutcome Malformed();
  static HelloOutcome Unproven();

  Kind kind = Kind::kOk;
  std::string reason;
};

// With a new nonce.
OfferBytes MakeOffer(const NodeIdentity& me, NodeId callee, ConnectionRole role);
// Of the caller: what came back. Sets `version` when it is kOk; then CallerProof is to be sent.
HelloOutcome CheckWelcome(const NodeIdentity& me, const OfferBytes& offered,
                          const WelcomeBytes& answered, uint16_t& version);
// Of the callee. A welcome that refuses is sent too; `outcome` says that it does.
struct Welcoming {
  HelloOffer offer;  // As claimed: nothing is proven yet.
  uint16_t version = 0;
  WelcomeBytes answer{};
  HelloOutcome outcome;
};
// kInvalid when there is nothing to answer to.
Result<Welcoming> AnswerOffer(const NodeIdentity& me, const OfferBytes& offered);

}  // namespace cairn::kv
