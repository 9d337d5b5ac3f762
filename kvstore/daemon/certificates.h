// The certificates that the configuration names: loaded, or refused with the names of their
// settings.
#pragma once

#include <memory>

#include "kvstore/base/result.h"
#include "kvstore/config/daemon_config.h"

namespace cairn::kv {

// Null: no certificate is set, and nothing is encrypted. kInvalid: a file cannot be read, or the
// key is not that of the certificate; the message begins with the settings.
Result<std::shared_ptr<const TlsContext>> ClientsTls(const DaemonConfig& config);
Result<std::shared_ptr<const TlsContext>> NodesTls(const DaemonConfig& config);

// kInvalid: one line for each group of files, those for etcd too, that cannot be used. What is not
// enabled is not read.
Status CheckCertificates(const DaemonConfig& config);

}  // namespace cairn::kv
