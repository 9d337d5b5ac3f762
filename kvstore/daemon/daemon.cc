// Start bottom-up, wait for signals, stop top-down.
#include "kvstore/daemon/daemon.h"

#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <ctime>

#include "kvstore/config/config_check.h"
#include "kvstore/config/config_file.h"
#include "kvstore/config/quantity.h"
#include "kvstore/config/version.h"
#include "kvstore/daemon/certificates.h"
#include "kvstore/daemon/daemon_flags.h"
#include "kvstore/daemon/daemon_log.h"
#include "kvstore/daemon/etcd_cluster.h"
#include "kvstore/daemon/http_endpoint.h"
#include "kvstore/daemon/store_service.h"
#include "kvstore/os/service_manager.h"

namespace cairn::kv {
namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr Nanos kCertificatesEvery = Seconds(30);  // Their files are looked at.

int Complain(const Status& status, int exit_code) {
  std::fprintf(stderr, "cairnd: %s\n", status.message().empty() ? status.ToString().c_str()
                                                                 : status.message().c_str());
  return exit_code;
}

UnixMillis UnixNow() { return {int64_t{std::time(nullptr)} * 1000}; }

MachineFacts ThisMachine() {
  const auto pages = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES));
  const auto page_size = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return {.memory_bytes = pages * page_size};
}

// Signals are taken by Wait only, so that nothing runs inside a handler.
class Signals {
 public:
  Signals() {
    sigemptyset(&set_);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set_, signal);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
  }
  // 0: none came within `patience`.
  int Wait(Nanos patience) {
    const timespec until{.tv_sec = patience.value / Seconds(1).value,
                         .tv_nsec = patience.value % Seconds(1).value};
    const int caught = sigtimedwait(&set_, nullptr, &until);
    return caught < 0 ? 0 : caught;
  }
  // From now on SIGTERM and SIGINT end the process at once.
  void Release() {
    sigdelset(&set_, SIGHUP);
    for (const int signal : {SIGTERM, SIGINT}) ::signal(signal, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &set_, nullptr);
  }

 private:
  sigset_t set_{};
};

void ReadLevelAgain(const DaemonFlags& flags, DaemonLog& log) {
  const auto config = LoadConfig(flags);
  if (!config.ok()) {
    log.Error("SIGHUP: the configuration was not read: " + config.status().message());
    return;
  }
  log.SetLevel(config.value().log.level);
  log.Info("SIGHUP: log.level was read again; other settings, but for the certificates in files "
           "that have changed, need a restart");
}

StoreServiceOptions ServiceOptions(const DaemonConfig& config) {
  StoreServiceOptions options;
  options.server = config.server;
  options.server.unix_path = config.SocketPath();
  options.server.tcp_address = config.listen.tcp;
  options.self_test = config.self_test;
  options.rated_drive_writes_per_day = config.drive_writes_per_day;
  return options;
}

// "ready unix:/x/cairn.sock tcp:127.0.0.1:7411 metrics:127.0.0.1:9511", with the true ports.
std::string ReadyLine(const DaemonConfig& config, const StoreService& service,
                      const HttpEndpoint* metrics) {
  const auto with_port = [](const std::string& address, uint16_t port) {
    return address.substr(0, address.rfind(':') + 1) + std::to_string(port);
  };
  std::string line = "ready";
  const std::string socket = config.SocketPath();
  if (!socket.empty()) line.append(" unix:").append(socket);
  if (!config.listen.tcp.empty()) {
    line.append(" tcp:").append(with_port(config.listen.tcp, service.tcp_port()));
  }
  if (metrics != nullptr) {
    line.append(" metrics:").append(with_port(config.listen.metrics, metrics->port()));
  }
  return line;
}

Status Serve(DaemonConfig config, const DaemonFlags& flags, Signals& signals, DaemonLog& log) {
  log.Info(std::string("cairnd ").append(kVersion).append(": opening ").append(
      config.node.data_dir));
  for (const std::string& warning : ConfigWarnings(config)) log.Warning(warning);
  KV_ASSIGN_OR_RETURN(const std::unique_ptr<Certificates> certificates, Certificates::Load(config));
  KV_ASSIGN_OR_RETURN(ServerOptions server, WithSecrets(config));
  server.tls = certificates->clients();
  config.server = std::move(server);
  StoreServiceOptions service_options = ServiceOptions(config);
  service_options.certificates = certificates.get();
  std::unique_ptr<EtcdCluster> cluster;
  if (config.cluster.enabled) {
    cluster = std::make_unique<EtcdCluster>(config, certificates->nodes(), log);
    service_options.cluster = cluster.get();
    // Appended by some node, and not published for so long: nobody will.
    config.node.node.reclaim.unpublished_age = Seconds(120);
  }
  StoreService service(std::move(service_options), log);
  std::unique_ptr<HttpEndpoint> metrics;
  if (!config.listen.metrics.empty()) {
    HttpPages pages{.metrics = [&service] { return service.MetricsPage(); },
                    .health = [&service] { return service.HealthPage(); },
                    .ready = [&service] { return service.ReadyPage(); }};
    KV_ASSIGN_OR_RETURN(metrics, HttpEndpoint::Start(config.listen.metrics, pages, log));
  }
  KV_ASSIGN_OR_RETURN(const std::unique_ptr<EmbeddedNode> node,
                      EmbeddedNode::Start(config.node, log, &service, cluster.get()));
  const std::string ready = ReadyLine(config, service, metrics.get());
  log.Info(ready);
  std::printf("%s\n", ready.c_str());
  std::fflush(stdout);
  NotifyServiceManager("READY=1");
  int caught = 0;
  while (caught == 0 || caught == SIGHUP) {
    if (caught == SIGHUP) ReadLevelAgain(flags, log);
    certificates->Refresh(UnixNow(), log);
    caught = signals.Wait(kCertificatesEvery);
  }
  log.Info("stopping; a second signal ends it at once");
  NotifyServiceManager("STOPPING=1");
  signals.Release();
  metrics.reset();
  KV_RETURN_IF_ERROR(node->Stop());
  log.Info("stopped");
  return Status();
}

int PrintCheck(const DaemonConfig& config, const std::string& file) {
  std::printf("%s: sound; memory limits add up to %s\n", file.c_str(),
              RoughBytes(static_cast<double>(MemoryLimit(config))).c_str());
  for (const std::string& warning : ConfigWarnings(config)) {
    std::printf("warning: %s\n", warning.c_str());
  }
  return kDone;
}

}  // namespace

int RunDaemon(int argc, char** argv) {
  Signals signals;
  DaemonFlags flags;
  CLI::App app("Serves an erasure-coded block store from files or SSDs.", "cairnd");
  app.footer("Exit codes: 0 stopped cleanly, 1 failed (the reason is printed), 2 wrong usage or "
             "configuration.");
  AddDaemonFlags(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kUsage;
  }
  const auto config = LoadConfig(flags);
  if (!config.ok()) return Complain(config.status(), kUsage);
  if (flags.print_config) {
    std::fputs(ToToml(config.value()).c_str(), stdout);
    return kDone;
  }
  const Status sound = CheckConfig(config.value(), ThisMachine());
  if (!sound.ok()) return Complain(sound, kUsage);
  const Status certified = CheckCertificates(config.value());
  if (!certified.ok()) return Complain(certified, kUsage);
  if (!flags.check_config.empty()) return PrintCheck(config.value(), flags.check_config);
  DaemonLog log(config.value().log);
  const Status served = Serve(config.value(), flags, signals, log);
  return served.ok() ? kDone : Complain(served, kFailed);
}

}  // namespace cairn::kv
