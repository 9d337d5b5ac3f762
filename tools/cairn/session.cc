// One connection, two data lanes; a failure to connect says where and what to do.
#include "tools/cairn/session.h"

#include "kvstore/config/daemon_config.h"

namespace cairn::tools {

using kv::Code;
using kv::RemoteStore;
using kv::Result;
using kv::Status;

std::string AddressOf(const VerbOptions& options) {
  if (!options.connect.empty()) return options.connect;
  const std::string folder = options.data_dir.empty() ? kv::kDataDirDefault : options.data_dir;
  return std::string("unix:").append(kv::SocketPathOf(folder));
}

Result<std::unique_ptr<Session>> Session::Open(const VerbOptions& options) {
  std::unique_ptr<Session> session(new Session(AddressOf(options)));
  kv::RemoteOptions remote;
  remote.address = session->address_;
  remote.name = "cairn";
  remote.tls = options.tls;
  KV_RETURN_IF_ERROR(ReadSecret(options.admin_token_file, remote.admin_token));
  auto client = kv::RemoteClient::Connect(remote, kv::PollerOptions{}, session->log_);
  if (!client.ok() && client.code() == Code::kUnavailable) {
    return Status(Code::kUnavailable,
                  "no store answers at " + session->address_ + ": " + client.status().message() +
                      "\nIs cairnd running? --connect unix:PATH|HOST:PORT|tls:HOST:PORT or "
                      "CAIRN_CONNECT says where it is.");
  }
  if (!client.ok()) return client.status();
  session->remote_ = std::move(client).value();
  return session;
}

Result<kv::SpaceInfo> Session::FindSpace(const std::string& name) {
  KV_ASSIGN_OR_RETURN(const std::vector<kv::SpaceInfo> spaces,
                      Ask<Result<std::vector<kv::SpaceInfo>>>(
                          [](RemoteStore& store) { return store.ListSpaces(); }));
  std::string names;
  for (const kv::SpaceInfo& space : spaces) {
    if (space.options.name == name) return space;
    if (names.size() < 400) names.append(names.empty() ? "" : ", ").append(space.options.name);
  }
  return Status(Code::kNotFound,
                "there is no namespace '" + name + "'; " +
                    (names.empty() ? "there is none: cairn namespace create NAME"
                                   : "there are: " + names));
}

Result<kv::NamespaceId> Session::AttachTo(const std::string& name, const std::string& token_file) {
  KV_ASSIGN_OR_RETURN(kv::SpaceInfo space, FindSpace(name));
  kv::NamespaceOptions options = std::move(space.options);
  options.create = false;
  KV_RETURN_IF_ERROR(ReadSecret(token_file, options.token));
  if (space.has_token && options.token.empty()) {
    return Status(Code::kInvalid, "namespace '" + name + "' asks for its token: --token-file FILE");
  }
  return Ask<Result<kv::NamespaceId>>(
      [&options](RemoteStore& store) { return store.Attach(options); });
}

}  // namespace cairn::tools
