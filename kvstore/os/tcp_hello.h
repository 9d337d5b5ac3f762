// How two nodes introduce themselves on a new TCP connection, and prove that both know the
// cluster's secret. Pure; docs/formats/peer.md tells it in order.
//
//   caller:   offer (nonce)   --->
//                             <---   welcome (nonce, proof)
//             proof           --->   then frames
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "kvstore/base/bytes.h"
#include "kvstore/base/hmac.h"
#include "kvstore/base/result.h"
#include "kvstore/io/network.h"

namespace cairn::kv {

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

}  // namespace cairn::kv
