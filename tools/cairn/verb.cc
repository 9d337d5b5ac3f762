// Standard output is written whole or not at all; a reader that has gone is no error worth a word.
#include "tools/cairn/verb.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>

namespace cairn::tools {

int ExitCodeOf(const kv::Status& status) {
  switch (status.code()) {
    case kv::Code::kOk: return kExitDone;
    case kv::Code::kNotFound: return kExitNotThere;
    case kv::Code::kInvalid: return kExitUsage;
    default: return kExitFailed;
  }
}

bool Console::Write(std::string_view text) {
  if (closed_) return false;
  EndProgress();
  const bool written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  closed_ = !written;
  return written;
}

void Console::Progress(const std::string& line) {
  if (json || ::isatty(STDERR_FILENO) == 0) return;
  std::fprintf(stderr, "\r\033[K%s", line.c_str());
  std::fflush(stderr);
  progress_shown_ = true;
}

void Console::EndProgress() {
  if (!progress_shown_) return;
  std::fprintf(stderr, "\r\033[K");
  std::fflush(stderr);
  progress_shown_ = false;
}

bool Console::OutputIsTerminal() { return ::isatty(STDOUT_FILENO) != 0; }
bool Console::InputIsTerminal() { return ::isatty(STDIN_FILENO) != 0; }

void AddVerbOptions(CLI::App& verb, Invocation& invocation) {
  verb.add_option("--connect", invocation.options.connect,
                  "the store: unix:PATH, HOST:PORT or tls:HOST:PORT")
      ->envname("CAIRN_CONNECT")
      ->type_name("ADDRESS");
  verb.add_option("--data-dir", invocation.options.data_dir,
                  "use the socket in this data folder, when --connect is not given")
      ->type_name("FOLDER");
  verb.add_option("--admin-token-file", invocation.options.admin_token_file,
                  "over TCP: the file whose first line lets administer")
      ->type_name("FILE");
  verb.add_option("--tls-ca-file", invocation.options.tls.ca_file,
                  "with tls: whom to trust, instead of the authorities of this machine")
      ->envname("CAIRN_TLS_CA_FILE")
      ->type_name("FILE");
  verb.add_option("--tls-cert-file", invocation.options.tls.cert_file,
                  "with tls: the certificate to show where the store asks for one")
      ->envname("CAIRN_TLS_CERT_FILE")
      ->type_name("FILE");
  verb.add_option("--tls-key-file", invocation.options.tls.key_file, "with tls: its key")
      ->envname("CAIRN_TLS_KEY_FILE")
      ->type_name("FILE");
  verb.add_flag("--json", invocation.console.json, "print JSON instead of text for people");
}

int Report(const kv::Status& status) {
  if (status.ok()) return kExitDone;
  const std::string message = status.message().empty() ? status.ToString() : status.message();
  std::fprintf(stderr, "cairn: %s\n", message.c_str());
  return ExitCodeOf(status);
}

void OnVerb(CLI::App& verb, Invocation& invocation, std::function<kv::Status()> body) {
  verb.callback([&invocation, body = std::move(body)] {
    invocation.run = [&invocation, body] {
      const kv::Status status = body();
      invocation.console.EndProgress();
      return invocation.console.closed() ? kExitClosed : Report(status);
    };
  });
}

kv::Status ReadSecret(const std::string& path, std::string& secret) {
  if (path.empty()) return kv::Status();
  std::ifstream file(path);
  if (!std::getline(file, secret) || secret.empty()) {
    return kv::Status(kv::Code::kInvalid, path + ": has no first line to read a secret from");
  }
  return kv::Status();
}

}  // namespace cairn::tools
