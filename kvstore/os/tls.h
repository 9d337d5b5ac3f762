// TLS 1.3 for byte streams: the certificates of a process, and the records of one connection.
//
// Pure state machines over memory, by OpenSSL; SocketStream moves their bytes. Older versions of
// TLS are not spoken.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kvstore/base/bytes.h"
#include "kvstore/base/result.h"
#include "kvstore/base/time.h"
#include "kvstore/io/tls_files.h"

namespace cairn::kv {

enum class TlsRole : uint8_t { kCaller, kCallee };

// The records of one connection. Loop thread only.
class TlsSession {
 public:
  virtual ~TlsSession() = default;

  // Goes on with the handshake as far as what was fed allows. kInvalid: the peer does not speak TLS
  // 1.3, or its certificate is not good; the message says which. After each call, and after an
  // error too, what Drain gives is to be sent.
  virtual Status Handshake() = 0;
  virtual bool established() const = 0;

  // Takes what came from the peer.
  virtual void Feed(ByteSpan sealed) = 0;
  // Fills `into` with what the peer has sent, and says how far; 0: more must be fed first.
  // kUnavailable: the peer has ended the stream, or broken it; nothing follows.
  virtual Result<size_t> Open(MutableByteSpan into) = 0;
  // Makes records of `plain`, which Drain gives.
  virtual Status Seal(ByteSpan plain) = 0;
  // Moves what is to be sent to the end of `into`.
  virtual void Drain(std::vector<uint8_t>& into) = 0;
};

// Constant; any thread.
class TlsContext {
 public:
  // kInvalid: a file cannot be read, or the key is not that of the certificate; the message names
  // the file. A context without a certificate is for callers only.
  static Result<std::shared_ptr<const TlsContext>> Load(const TlsFiles& files);
  virtual ~TlsContext() = default;

  // `peer_name`: the host name or address that a caller's peer must have a certificate for; empty:
  // any that the authority has signed will do.
  virtual std::unique_ptr<TlsSession> NewSession(TlsRole role,
                                                 const std::string& peer_name) const = 0;

  // The end of its own certificate, or of the first to end of those up to its root that come with
  // it. Nothing: it has none.
  virtual std::optional<UnixMillis> ends_at() const = 0;
};

}  // namespace cairn::kv
