// What the store verbs of `cairn` share: where the store is, how answers are printed, exit codes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "kvstore/base/status.h"
#include "kvstore/os/tls.h"

namespace CLI {
class App;
}

namespace cairn::tools {

// Documented in cairn(1). Scripts rely on them.
inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;     // The store said no, or cannot be reached.
inline constexpr int kExitUsage = 2;      // Bad arguments or input.
inline constexpr int kExitNotThere = 3;   // A miss, or no such namespace or node.
inline constexpr int kExitUnhealthy = 4;  // With --check: something needs a person.
inline constexpr int kExitClosed = 141;   // Who read the output has gone: as a signal would.

int ExitCodeOf(const kv::Status& status);

// Where verbs write. Human text and JSON to standard output; progress to standard error, and only
// when that is a terminal.
class Console {
 public:
  bool json = false;

  // False when the reader has gone: stop writing, and end with kExitClosed.
  bool Write(std::string_view text);
  bool closed() const { return closed_; }

  // Replaces the last progress line. Nothing happens where it would be noise.
  void Progress(const std::string& line);
  void EndProgress();
  static bool OutputIsTerminal();
  static bool InputIsTerminal();

 private:
  bool closed_ = false;
  bool progress_shown_ = false;
};

// What every store verb can be told.
struct VerbOptions {
  std::string connect;           // --connect
  std::string data_dir;          // --data-dir: its socket, when connect is empty.
  std::string admin_token_file;  // --admin-token-file
  kv::TlsFiles tls;              // --tls-ca-file, --tls-cert-file, --tls-key-file
};

// Collects what the command line asked for; main runs it once.
struct Invocation {
  VerbOptions options;
  Console console;
  std::function<int()> run;
};

// All of VerbOptions, and --json.
void AddVerbOptions(CLI::App& verb, Invocation& invocation);

// Says "cairn: MESSAGE" on standard error, and gives the exit code.
int Report(const kv::Status& status);

// Makes `verb` run `body` with `flags`; a bad Status is reported.
template <typename Flags>
void OnVerb(CLI::App& verb, Invocation& invocation, std::shared_ptr<Flags> flags,
            kv::Status (*body)(Invocation&, const Flags&));
void OnVerb(CLI::App& verb, Invocation& invocation, std::function<kv::Status()> body);

template <typename Flags>
void OnVerb(CLI::App& verb, Invocation& invocation, std::shared_ptr<Flags> flags,
            kv::Status (*body)(Invocation&, const Flags&)) {
  OnVerb(verb, invocation, [&invocation, flags, body] { return body(invocation, *flags); });
}

// The whole of a small secret file's first line.
kv::Status ReadSecret(const std::string& path, std::string& secret);

}  // namespace cairn::tools
