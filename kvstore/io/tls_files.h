// Where the certificates of a process are.
#pragma once

#include <string>

namespace cairn::kv {

// PEM files.
struct TlsFiles {
  std::string cert_file = {};  // Own certificate, then those between it and its root.
  std::string key_file = {};   // Of the first of them.
  // Who signs the peers' certificates. Empty: callers trust the authorities of this machine, and
  // whoever is called asks for no certificate.
  std::string ca_file = {};
};

}  // namespace cairn::kv
