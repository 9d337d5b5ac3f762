// The command line: `cairn up` runs everything on one machine; other verbs are tools.
#include <signal.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "engine/gguf/tiny_model.h"
#include "tools/cairn/console_log.h"
#include "tools/planner/commands.h"
#include "tools/replay/replay_command.h"
#include "tools/stack/stack.h"

namespace cairn::tools {
namespace {

constexpr const char* kVersion = "0.1.0";

int Fail(const kv::Status& status) {
  std::fprintf(stderr, "cairn: %s\n", status.message().empty() ? status.ToString().c_str()
                                                                : status.message().c_str());
  return 1;
}

// Blocks SIGINT and SIGTERM in this thread and all that it starts; Wait takes one of them.
class StopSignals {
 public:
  StopSignals() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    signal(SIGPIPE, SIG_IGN);
  }
  void Wait() {
    int caught = 0;
    sigwait(&signals_, &caught);
  }

 private:
  sigset_t signals_{};
};

int RunUp(StackOptions options, const std::string& token_file) {
  if (!token_file.empty()) {
    std::ifstream file(token_file);
    if (!std::getline(file, options.bearer_token) || options.bearer_token.empty()) {
      return Fail(kv::Status(kv::Code::kInvalid, token_file + ": cannot read a token from it"));
    }
  }
  StopSignals signals;
  ConsoleLog log;
  auto stack = Stack::Start(options, log);
  if (!stack.ok()) return Fail(stack.status());
  log.Info("listening on http://" + options.host + ":" + std::to_string(stack.value()->port()));
  // For a parent process that asked for any port.
  std::printf("ready %u\n", static_cast<unsigned>(stack.value()->port()));
  std::fflush(stdout);
  signals.Wait();
  log.Info("stopping");
  const kv::Status stopped = stack.value()->Stop();
  return stopped.ok() ? 0 : Fail(stopped);
}

void AddPoller(CLI::App& app, kv::PollerEngine& engine) {
  const auto parse = [&engine](const std::string& name) {
    const auto parsed = kv::ParsePollerEngine(name);
    if (!parsed.ok()) throw CLI::ValidationError("--poller", parsed.status().message());
    engine = parsed.value();
  };
  app.add_option_function<std::string>(
         "--poller", parse,
         "io_uring, epoll (and threads), or auto: the first that is permitted")
      ->envname("CAIRN_POLLER")
      ->default_str("auto");
}

void AddUp(CLI::App& app, StackOptions& options, std::string& token_file) {
  const auto size = CLI::AsSizeValue(/*kb_is_1000=*/false);
  app.add_option("--model", options.model_path, "GGUF file of the llama family")->required();
  app.add_option("--model-name", options.model_name, "name in the API (default: the file's)");
  app.add_option("--data", options.data_dir, "folder of the store's targets")->required();
  app.add_option("--capacity", options.capacity_bytes, "of the store over all targets, raw")
      ->transform(size)
      ->capture_default_str();
  app.add_option("--ttl", options.ttl_seconds, "seconds that blocks are kept after the last hit")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--host", options.host, "address to listen on")->capture_default_str();
  app.add_option("--port", options.port, "0 takes any free one")->capture_default_str();
  app.add_option("--token-file", token_file, "clients must send its first line as bearer token");
  app.add_option("--threads", options.threads, "of the engine")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--context", options.context_tokens_max, "tokens of one sequence; 0: the model's");
  app.add_option("--block-tokens", options.block_tokens, "of one KV block; a multiple of 16")
      ->capture_default_str();
  app.add_option("--kv-memory", options.kv_pool_bytes, "KV working memory of the engine")
      ->transform(size)
      ->capture_default_str();
  app.add_flag("--always-load{false}", options.load_only_if_faster,
               "load a stored prefix even when computing it would be faster");
  AddPoller(app, options.poller);
}

int RunTinyModel(const std::string& path) {
  auto writer = engine::MakeTinyModel({});
  if (!writer.ok()) return Fail(writer.status());
  const kv::Status written = writer.value().WriteTo(path);
  return written.ok() ? 0 : Fail(written);
}

int RunCheckModel(const std::string& path) {
  const auto summary = CheckModel(path);
  if (!summary.ok()) return Fail(summary.status());
  std::printf("%s: %s, %.1f M parameters, context %u tokens, KV %llu bytes a token\n",
              path.c_str(), summary.value().architecture.c_str(),
              static_cast<double>(summary.value().parameters) / 1e6,
              summary.value().context_tokens_max,
              static_cast<unsigned long long>(summary.value().kv_bytes_per_token));
  return 0;
}

int Main(int argc, char** argv) {
  CLI::App app{"Cairn: an erasure-coded SSD block store for KV cache, its engine and gateway"};
  app.require_subcommand(1);
  app.set_version_flag("--version", kVersion);
  app.footer("Exit codes: 0 done, 1 failed (the reason is printed), 2 wrong usage.");

  // These three read their own arguments, help included; here they are only named.
  app.add_subcommand("plan", "how many SSDs, for how long, at what price: cairn plan --help");
  app.add_subcommand("trace", "hit rates and tools for request traces: cairn trace --help");
  app.add_subcommand("replay", "drive a real store with a trace: cairn replay --help");
  const std::string verb = argc > 1 ? argv[1] : "";
  if (verb == "plan") return RunPlan(argc - 1, argv + 1);
  if (verb == "trace") return RunTrace(argc - 1, argv + 1);
  if (verb == "replay") return RunReplay(argc - 1, argv + 1);

  StackOptions options;
  std::string token_file;
  CLI::App* up = app.add_subcommand("up", "run store, engine and gateway until SIGINT or SIGTERM");
  AddUp(*up, options, token_file);

  std::string path;
  CLI::App* tiny = app.add_subcommand("tiny-model", "write a tiny model with random weights");
  tiny->add_option("file", path, "GGUF file to write")->required();
  CLI::App* check = app.add_subcommand("check-model", "say whether a model file can be used");
  check->add_option("file", path, "GGUF file")->required();

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (up->parsed()) return RunUp(options, token_file);
  return tiny->parsed() ? RunTinyModel(path) : RunCheckModel(path);
}

}  // namespace
}  // namespace cairn::tools

int main(int argc, char** argv) { return cairn::tools::Main(argc, argv); }
