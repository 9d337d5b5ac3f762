// A verb's connection to a running store.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "kvstore/remote/remote_client.h"
#include "tools/cairn/verb.h"

namespace cairn::tools {

// The address that the options, CAIRN_CONNECT or the default data folder name.
std::string AddressOf(const VerbOptions& options);

class Session {
 public:
  // kUnavailable: nobody answers there; the message says what to try.
  static kv::Result<std::unique_ptr<Session>> Open(const VerbOptions& options);

  kv::RemoteClient& remote() { return *remote_; }
  const std::string& address() const { return address_; }

  // Asks the store and waits.
  template <typename T>
  T Ask(std::function<kv::Task<T>(kv::RemoteStore&)> call) {
    return remote_->Ask<T>(std::move(call));
  }

  // The namespace of that name; kNotFound, with the names there are.
  kv::Result<kv::SpaceInfo> FindSpace(const std::string& name);
  // Attaches to it, so that its blocks can be asked for. `token_file` may be empty.
  kv::Result<kv::NamespaceId> AttachTo(const std::string& name, const std::string& token_file);

 private:
  Session(std::string address) : address_(std::move(address)) {}

  const std::string address_;
  kv::NullLog log_;
  std::unique_ptr<kv::RemoteClient> remote_;
};

}  // namespace cairn::tools
