// What the networks of all transports are told alike.
#pragma once

#include "kvstore/os/peer_calls.h"
#include "kvstore/os/request_admission.h"
#include "kvstore/os/tcp_hello.h"

namespace cairn::kv {

// kInvalid names the limit. No secret at all is for the transport to judge.
template <typename Options>
Status CheckNodeOptions(const Options& options) {
  constexpr size_t kSecretSizeMin = 16;
  constexpr uint32_t kDataConnectionsMax = 64;
  if (!options.secret.empty() && options.secret.size() < kSecretSizeMin) {
    return {Code::kInvalid, "a cluster secret has at least 16 bytes"};
  }
  if (options.data_connections < 1 || options.data_connections > kDataConnectionsMax) {
    return {Code::kInvalid, "data_connections is 1 to 64"};
  }
  if (options.peer_bytes_max < kCallBytesMax || options.bytes_max < options.peer_bytes_max) {
    return {Code::kInvalid, "peer_bytes_max is at least 148 MiB, and at most bytes_max"};
  }
  if (options.versions.min > options.versions.max) {
    return {Code::kInvalid, "the range of versions is empty"};
  }
  return {};
}

// Without TLS.
template <typename Options>
NodeIdentity IdentityOf(const Options& options) {
  NodeIdentity identity;
  identity.self = options.self;
  identity.cluster = Sha256(AsBytes(options.cluster));
  identity.secret = options.secret;
  identity.versions = options.versions;
  return identity;
}

template <typename Options>
PeerCalls::Limits CallLimitsOf(const Options& options) {
  return {.data_connections = options.data_connections,
          .peer_bytes_max = options.peer_bytes_max,
          .bytes_max = options.bytes_max,
          .reconnect_after = options.reconnect_after};
}

}  // namespace cairn::kv
