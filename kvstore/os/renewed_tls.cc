// The files are looked at before they are read: a change meanwhile is seen the next time.
#include "kvstore/os/renewed_tls.h"

#include <sys/stat.h>

#include <utility>

namespace cairn::kv {

Result<std::shared_ptr<RenewedTls>> RenewedTls::Load(const TlsFiles& files) {
  std::shared_ptr<RenewedTls> renewed(new RenewedTls(files));
  KV_ASSIGN_OR_RETURN(renewed->current_, TlsContext::Load(files));
  return renewed;
}

Result<bool> RenewedTls::Refresh() {
  const Stamps now = Look();
  if (now == stamps_) return false;
  stamps_ = now;
  KV_ASSIGN_OR_RETURN(std::shared_ptr<const TlsContext> loaded, TlsContext::Load(files_));
  const std::lock_guard lock(mutex_);
  current_ = std::move(loaded);
  return true;
}

RenewedTls::Stamps RenewedTls::Look() const {
  Stamps stamps;
  const std::array<const std::string*, 3> paths{&files_.cert_file, &files_.key_file,
                                                &files_.ca_file};
  for (size_t i = 0; i < paths.size(); ++i) {
    struct stat found {};
    if (paths[i]->empty() || stat(paths[i]->c_str(), &found) != 0) continue;
    stamps[i] = {.device = found.st_dev,
                 .inode = found.st_ino,
                 .size = static_cast<uint64_t>(found.st_size),
                 .changed_at = found.st_mtim.tv_sec * 1'000'000'000 + found.st_mtim.tv_nsec};
  }
  return stamps;
}

std::shared_ptr<const TlsContext> RenewedTls::current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

std::unique_ptr<TlsSession> RenewedTls::NewSession(TlsRole role,
                                                   const std::string& peer_name) const {
  return current()->NewSession(role, peer_name);
}

std::optional<UnixMillis> RenewedTls::ends_at() const { return current()->ends_at(); }

}  // namespace cairn::kv
