// The certificates that the configuration names: loaded, or refused with the names of their
// settings, and read again when their files change.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kvstore/base/log.h"
#include "kvstore/base/result.h"
#include "kvstore/base/time.h"
#include "kvstore/config/daemon_config.h"
#include "kvstore/os/renewed_tls.h"

namespace cairn::kv {

// Any thread, but for Refresh.
class Certificates {
 public:
  // kInvalid: a file cannot be read, or the key is not that of the certificate; the message begins
  // with the settings. What is not enabled is not read.
  static Result<std::unique_ptr<Certificates>> Load(const DaemonConfig& config);

  // For connections of clients, and of other nodes. Null: no certificate is set, and nothing is
  // encrypted.
  std::shared_ptr<const TlsContext> clients() const { return clients_.tls; }
  std::shared_ptr<const TlsContext> nodes() const { return nodes_.tls; }

  // Uses what has changed, and says so to `log`; or why not, and goes on with what was good. Warns
  // once a day of a certificate that ends within two weeks. One thread; it reads files.
  void Refresh(UnixMillis now, Log& log);

  // Of every certificate that is set: "clients" or "nodes", and its end.
  struct End {
    std::string use;
    UnixMillis ends_at;
  };
  std::vector<End> Ends() const;

 private:
  struct Group {
    std::string use;
    std::string settings;
    std::shared_ptr<RenewedTls> tls = nullptr;
    UnixMillis warned_at = {};
  };
  static Result<Group> LoadGroup(std::string use, std::string settings, const TlsFiles& files);
  static void RefreshGroup(Group& group, UnixMillis now, Log& log);

  Group clients_;
  Group nodes_;
};

// kInvalid: one line for each group of files, those for etcd too, that cannot be used. What is not
// enabled is not read.
Status CheckCertificates(const DaemonConfig& config);

}  // namespace cairn::kv
