// Fixed offsets, little-endian.
#include "kvstore/os/tcp_hello.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "kvstore/os/entropy.h"
#include "kvstore/os/fixed_fields.h"

namespace cairn::kv {

namespace {

constexpr uint32_t kOfferMagic = 0x314f5243;    // "CRO1"
constexpr uint32_t kWelcomeMagic = 0x31485243;  // "CRH1"
constexpr size_t kProofAt = kWelcomeSize - sizeof(Sha256Digest);

Sha256Digest Proof(std::string_view side, const std::string& secret, const OfferBytes& offer,
                   const WelcomeBytes& welcome) {
  std::vector<uint8_t> said(side.begin(), side.end());
  said.insert(said.end(), offer.begin(), offer.end());
  said.insert(said.end(), welcome.begin(), welcome.begin() + kProofAt);
  return HmacSha256(AsBytes(secret), said);
}

Nonce DrawNonce() {
  Nonce nonce;
  FillFromKernel(nonce);
  return nonce;
}

HelloRefusal Judge(const NodeIdentity& me, const HelloOffer& offer) {
  if (!CommonVersion(me.versions, offer.versions).has_value()) return HelloRefusal::kVersion;
  if (offer.cluster != me.cluster) return HelloRefusal::kCluster;
  if (offer.callee != me.self) return HelloRefusal::kNode;
  return HelloRefusal::kNone;
}

}  // namespace

std::string_view RefusalText(HelloRefusal refusal) {
  switch (refusal) {
    case HelloRefusal::kNone: return "none";
    case HelloRefusal::kVersion: return "it speaks no version that this node speaks";
    case HelloRefusal::kCluster: return "it belongs to another cluster";
    case HelloRefusal::kNode: return "another node answers at that address";
  }
  return "unknown";
}

OfferBytes EncodeOffer(const HelloOffer& offer) {
  OfferBytes bytes{};
  PutField(&bytes[0], kOfferMagic);
  PutField(&bytes[4], offer.versions.min);
  PutField(&bytes[6], offer.versions.max);
  bytes[8] = static_cast<uint8_t>(offer.role);
  PutField(&bytes[12], offer.caller.value);
  PutField(&bytes[16], offer.callee.value);
  PutField(&bytes[20], offer.cluster);
  PutField(&bytes[52], offer.nonce);
  return bytes;
}

WelcomeBytes EncodeWelcome(const HelloWelcome& welcome) {
  WelcomeBytes bytes{};
  PutField(&bytes[0], kWelcomeMagic);
  bytes[4] = static_cast<uint8_t>(welcome.refusal);
  PutField(&bytes[6], welcome.version);
  PutField(&bytes[8], welcome.callee.value);
  PutField(&bytes[12], welcome.nonce);
  PutField(&bytes[kProofAt], welcome.proof);
  return bytes;
}

Result<HelloOffer> ParseOffer(const OfferBytes& bytes) {
  HelloOffer offer;
  offer.versions = {.min = LoadField<uint16_t>(&bytes[4]), .max = LoadField<uint16_t>(&bytes[6])};
  offer.role = static_cast<ConnectionRole>(bytes[8]);
  offer.caller.value = LoadField<uint32_t>(&bytes[12]);
  offer.callee.value = LoadField<uint32_t>(&bytes[16]);
  offer.cluster = LoadField<ClusterDigest>(&bytes[20]);
  offer.nonce = LoadField<Nonce>(&bytes[52]);
  if (offer.versions.min > offer.versions.max || bytes[8] > 1 || EncodeOffer(offer) != bytes) {
    return Status(Code::kInvalid, "not the offer of a node");
  }
  return offer;
}

Result<HelloWelcome> ParseWelcome(const WelcomeBytes& bytes) {
  HelloWelcome welcome;
  welcome.refusal = static_cast<HelloRefusal>(bytes[4]);
  welcome.version = LoadField<uint16_t>(&bytes[6]);
  welcome.callee.value = LoadField<uint32_t>(&bytes[8]);
  welcome.nonce = LoadField<Nonce>(&bytes[12]);
  welcome.proof = LoadField<Sha256Digest>(&bytes[kProofAt]);
  if (welcome.refusal > HelloRefusal::kNode || EncodeWelcome(welcome) != bytes) {
    return Status(Code::kInvalid, "not the welcome of a node");
  }
  return welcome;
}

std::optional<uint16_t> CommonVersion(VersionRange a, VersionRange b) {
  const uint16_t highest = std::min(a.max, b.max);
  if (highest < std::max(a.min, b.min)) return std::nullopt;
  return highest;
}

Sha256Digest CalleeProof(const std::string& secret, const OfferBytes& offer,
                         const WelcomeBytes& welcome) {
  return Proof("cairn node, callee", secret, offer, welcome);
}

Sha256Digest CallerProof(const std::string& secret, const OfferBytes& offer,
                         const WelcomeBytes& welcome) {
  return Proof("cairn node, caller", secret, offer, welcome);
}

HelloOutcome HelloOutcome::Ended() {
  return {Kind::kEnded, "the connection ended during the hello"};
}
HelloOutcome HelloOutcome::Malformed() {
  return {Kind::kMalformed, "it does not speak as a node does"};
}
HelloOutcome HelloOutcome::Unproven() {
  return {Kind::kUnproven, "it does not know the secret of this cluster"};
}

OfferBytes MakeOffer(const NodeIdentity& me, NodeId callee, ConnectionRole role) {
  return EncodeOffer({.versions = me.versions, .role = role, .caller = me.self, .callee = callee,
                      .cluster = me.cluster, .nonce = DrawNonce()});
}

HelloOutcome CheckWelcome(const NodeIdentity& me, const OfferBytes& offered,
                          const WelcomeBytes& answered, uint16_t& version) {
  const Result<HelloWelcome> welcome = ParseWelcome(answered);
  if (!welcome.ok()) return HelloOutcome::Malformed();
  if (welcome.value().refusal != HelloRefusal::kNone) {
    return {HelloOutcome::Kind::kRefused, std::string(RefusalText(welcome.value().refusal))};
  }
  if (!SameSecret(welcome.value().proof, CalleeProof(me.secret, offered, answered))) {
    return HelloOutcome::Unproven();
  }
  version = welcome.value().version;
  const NodeId meant = ParseOffer(offered).value().callee;
  if (welcome.value().callee != meant || version < me.versions.min || version > me.versions.max) {
    return HelloOutcome::Malformed();
  }
  return {};
}

Result<Welcoming> AnswerOffer(const NodeIdentity& me, const OfferBytes& offered) {
  KV_ASSIGN_OR_RETURN(const HelloOffer offer, ParseOffer(offered));
  Welcoming welcoming;
  welcoming.offer = offer;
  welcoming.version = CommonVersion(me.versions, offer.versions).value_or(0);
  HelloWelcome welcome;
  welcome.refusal = Judge(me, offer);
  welcome.version = welcoming.version;
  welcome.callee = me.self;
  welcome.nonce = DrawNonce();
  if (welcome.refusal == HelloRefusal::kNone) {
    welcome.proof = CalleeProof(me.secret, offered, EncodeWelcome(welcome));
  } else {
    welcoming.outcome = {HelloOutcome::Kind::kRefused, std::string(RefusalText(welcome.refusal))};
  }
  welcoming.answer = EncodeWelcome(welcome);
  return welcoming;
}

}  // namespace cairn::kv
