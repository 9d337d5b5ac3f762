// The three worlds: a folder, a simulation, and an etcd that the test starts and stops by its id.
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include "kvstore/control/etcd/etcd_store.h"
#include "kvstore/control/file/file_store.h"
#include "kvstore/os/poller.h"
#include "kvstore/os/system_clock.h"
#include "kvstore/os/thread_workers.h"
#include "tests/sim/sim_control_store.h"
#include "tests/support/poller_from_environment.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/kvstore/control/stores/store_rig.h"

extern char** environ;

namespace cairn::kv {
namespace {

// What both real stores need: a loop with its poller, and threads.
class RealRig : public StoreRig {
 public:
  Clock& clock() override { return clock_; }
  Loop& loop() override { return loop_; }
  void RunUntil(const std::function<bool()>& done) override { poller_->RunUntil(done); }

 protected:
  Loop loop_;
  NullLog log_;
  std::unique_ptr<Poller> poller_ =
      Poller::Create(loop_, log_, PollerFromEnvironment()).value();
  SystemClock clock_{*poller_};
  ThreadWorkers workers_{*poller_, 4};
};

class FileRig final : public RealRig {
 public:
  ControlStore& store() override { return file_->store(); }
  bool SetAway(bool) override { return false; }

 private:
  testing::TemporaryFolder folder_;
  std::unique_ptr<FileStore> file_ =
      FileStore::Open(loop_, clock_, workers_, folder_.path()).value();
};

class SimRig final : public StoreRig {
 public:
  ControlStore& store() override { return control_.ClientOf(1, clock_); }
  Clock& clock() override { return clock_; }
  Loop& loop() override { return loop_; }
  bool SetAway(bool away) override {
    if (away) {
      control_.GoDown();
    } else {
      control_.ComeBack(sim::SimControl::Leases::kRenewed);
    }
    return true;
  }
  void RunUntil(const std::function<bool()>& done) override { KV_CHECK(clock_.RunUntil(done)); }

 private:
  Loop loop_;
  sim::SimClock clock_{loop_};
  sim::SimControl control_{clock_, 1};
};

// A port that was free a moment ago.
int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  KV_CHECK(bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0);
  KV_CHECK(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  close(fd);
  return ntohs(address.sin_port);
}

// An etcd of this test alone.
class EtcdProcess {
 public:
  EtcdProcess() {
    const std::string client = "http://127.0.0.1:" + std::to_string(FreePort());
    const std::string peer = "http://127.0.0.1:" + std::to_string(FreePort());
    endpoint_ = client;
    std::vector<std::string> words{"etcd", "--name", "test", "--data-dir", folder_.path() + "/data",
                                   "--listen-client-urls", client,
                                   "--advertise-client-urls", client,
                                   "--listen-peer-urls", peer,
                                   "--initial-advertise-peer-urls", peer,
                                   "--initial-cluster", "test=" + peer};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    const std::string log = folder_.path() + "/log";
    for (const int fd : {1, 2}) {
      posix_spawn_file_actions_addopen(&actions, fd, log.c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                       0600);
    }
    KV_CHECK(posix_spawnp(&pid_, "etcd", &actions, nullptr, arguments.data(), environ) == 0);
    posix_spawn_file_actions_destroy(&actions);
  }
  ~EtcdProcess() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  const std::string& endpoint() const { return endpoint_; }
  void SetStopped(bool stopped) { kill(pid_, stopped ? SIGSTOP : SIGCONT); }

 private:
  testing::TemporaryFolder folder_;
  std::string endpoint_;
  pid_t pid_ = 0;
};

bool IsEtcdInstalled() {
  for (const char* folder : {"/usr/bin/", "/usr/local/bin/"}) {
    if (std::filesystem::exists(std::string(folder) + "etcd")) return true;
  }
  return false;
}

class EtcdRig final : public RealRig {
 public:
  EtcdRig() {
    // A first endpoint where nobody listens: every call fails over.
    EtcdOptions options;
    options.endpoints = {"http://127.0.0.1:" + std::to_string(FreePort()), process_.endpoint()};
    store_ = EtcdStore::Create(clock_, workers_, options).value();
    while (!Await(store_->Range("/", In(5))).ok()) {
    }
  }
  ControlStore& store() override { return *store_; }
  bool SetAway(bool away) override {
    process_.SetStopped(away);
    return true;
  }

 private:
  EtcdProcess process_;
  std::unique_ptr<EtcdStore> store_;
};

}  // namespace

std::unique_ptr<StoreRig> NewFileRig() { return std::make_unique<FileRig>(); }
std::unique_ptr<StoreRig> NewSimRig() { return std::make_unique<SimRig>(); }
std::unique_ptr<StoreRig> NewEtcdRig() {
  return IsEtcdInstalled() ? std::make_unique<EtcdRig>() : nullptr;
}

}  // namespace cairn::kv
