// A certificate authority for tests, and what it signs.
#pragma once

#include <memory>
#include <string>

#include "kvstore/os/tls.h"

namespace cairn::testing {

// Writes PEM files into `folder`, which outlives it.
class TlsAuthority {
 public:
  // `name` tells authorities of one folder apart.
  TlsAuthority(std::string folder, std::string name);
  ~TlsAuthority();

  std::string ca_file() const;
  struct Issue {
    std::string host = "localhost";  // And 127.0.0.1.
    bool expired = false;
  };
  // A certificate and its key, and this authority for the peers'.
  kv::TlsFiles NewFiles(const Issue& what);
  kv::TlsFiles NewFiles() { return NewFiles(Issue()); }

 private:
  struct Keys;
  const std::string folder_;
  const std::string name_;
  const std::unique_ptr<Keys> keys_;
  int issued_ = 0;
};

}  // namespace cairn::testing
