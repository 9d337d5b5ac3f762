// `cairn up`: store, engine and gateway in this process until a signal.
#include "tools/cairn/up_verb.h"

#include <signal.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>

#include "engine/gguf/tiny_model.h"
#include "tools/cairn/console_log.h"
#include "tools/stack/stack.h"

namespace cairn::tools {
namespace {

int Fail(const kv::Status& status) {
  (void)Report(status);
  return kExitFailed;
}

// Blocks SIGINT and SIGTERM in this thread and all that it starts; Wait takes one of them.
class StopSignals {
 public:
  StopSignals() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
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

void AddUpOptions(CLI::App& app, StackOptions& options, std::string& token_file) {
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

struct UpFlags {
  StackOptions options;
  std::string token_file;
};

}  // namespace

void AddUpVerb(CLI::App& app, Invocation& invocation) {
  CLI::App* verb =
      app.add_subcommand("up", "run store, engine and gateway until SIGINT or SIGTERM");
  auto flags = std::make_shared<UpFlags>();
  AddUpOptions(*verb, flags->options, flags->token_file);
  verb->callback([&invocation, flags] {
    invocation.run = [flags] { return RunUp(flags->options, flags->token_file); };
  });
}

void AddModelVerbs(CLI::App& app, Invocation& invocation) {
  auto path = std::make_shared<std::string>();
  CLI::App* tiny = app.add_subcommand("tiny-model", "write a tiny model with random weights");
  tiny->add_option("FILE", *path, "GGUF file to write")->required()->type_name("");
  tiny->callback([&invocation, path] { invocation.run = [path] { return RunTinyModel(*path); }; });
  CLI::App* check = app.add_subcommand("check-model", "say whether a model file can be used");
  check->add_option("FILE", *path, "GGUF file")->required()->type_name("");
  check->callback(
      [&invocation, path] { invocation.run = [path] { return RunCheckModel(*path); }; });
}

}  // namespace cairn::tools
