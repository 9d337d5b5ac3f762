// Certificates that are replaced while a process runs.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "kvstore/os/tls.h"

namespace cairn::kv {

// Makes sessions from what its files had when they were last read. Sessions that are there keep
// what they began with. Any thread, but for Refresh.
class RenewedTls final : public TlsContext {
 public:
  // As TlsContext::Load.
  static Result<std::shared_ptr<RenewedTls>> Load(const TlsFiles& files);

  // Reads the files if one of them has changed since it was looked at; true: they are in use now.
  // Errors as of Load, but once for each change: what was in use stays. A certificate that was
  // replaced before its key is such an error, and ends when the key follows. One thread at a time;
  // it reads files.
  Result<bool> Refresh();

  std::unique_ptr<TlsSession> NewSession(TlsRole role, const std::string& peer_name) const override;
  std::optional<UnixMillis> ends_at() const override;

 private:
  // Which file it is, and of when; through links, as Kubernetes replaces them.
  struct Stamp {
    bool operator==(const Stamp&) const = default;
    uint64_t device = 0;
    uint64_t inode = 0;
    uint64_t size = 0;
    int64_t changed_at = 0;  // Nanoseconds.
  };
  using Stamps = std::array<Stamp, 3>;

  explicit RenewedTls(TlsFiles files) : files_(std::move(files)), stamps_(Look()) {}
  Stamps Look() const;
  std::shared_ptr<const TlsContext> current() const;

  const TlsFiles files_;
  Stamps stamps_;
  mutable std::mutex mutex_;
  std::shared_ptr<const TlsContext> current_;  // Exchanged under mutex_.
};

}  // namespace cairn::kv
