// A node that answers, and one that calls it: over RDMA, or over TCP to compare.
//
// usage: rdma_driver rdma|tcp serve ADDRESS:PORT
//        rdma_driver rdma|tcp call ADDRESS PEER:PORT ROUNDS      every call has to succeed
//        rdma_driver rdma|tcp outlive ADDRESS PEER:PORT          until calls have failed, and then
//                                                                succeeded again
//        rdma_driver rdma|tcp count ADDRESS PEER:PORT MIB        what it costs to read so much
// ADDRESS is "a.b.c.d", more of them joined by commas: one for each port. Wrong bytes, and a call
// that does not end soon after its deadline, end it with 1.
#include <sys/resource.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "kvstore/base/random.h"
#include "kvstore/os/poller.h"
#include "kvstore/os/system_clock.h"
#include "kvstore/os/tcp_network.h"
#include "kvstore/rdma/rdma_network.h"

namespace cairn::kv {
namespace {

constexpr NodeId kCaller{1};
constexpr NodeId kServer{2};
constexpr const char* kSecret = "a secret of the test driver";
// Of an emulated machine, with others on its host.
constexpr Nanos kPatience = Seconds(60);  // Of one call that has to succeed.
constexpr Nanos kPatienceInFaults = Seconds(2);
constexpr Nanos kConnectTimeout = Seconds(10);
constexpr Nanos kHangs = Seconds(20);  // Past a deadline.
constexpr uint64_t kPayloadMax = 3 * kMiB;

class StderrLog final : public Log {
 public:
  void Write(LogLevel, std::string_view message) override {
    std::fprintf(stderr, "log: %.*s\n", static_cast<int>(message.size()), message.data());
  }
};

[[noreturn]] void Fail(const std::string& what) {
  std::printf("FAILED: %s\n", what.c_str());
  std::exit(1);
}

std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

Bytes Pattern(uint64_t seed, size_t size) {
  Bytes bytes(size);
  Random(seed).Fill(bytes.span());
  return bytes;
}

bool Same(ByteSpan a, ByteSpan b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
}

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// One node on one transport.
class Node {
 public:
  Node(bool rdma, NodeId self, const std::vector<std::string>& addresses) {
    poller_ = Poller::Create(loop_, log_, PollerOptions()).value();
    clock_ = std::make_unique<SystemClock>(*poller_);
    if (rdma) {
      MakeRdma(self, addresses);
    } else {
      MakeTcp(self, addresses[0]);
    }
  }
  ~Node() { poller_->Await(rdma_ != nullptr ? rdma_->Stop() : tcp_->Stop()); }

  Poller& poller() { return *poller_; }
  Clock& clock() { return *clock_; }
  Network& network() { return rdma_ != nullptr ? static_cast<Network&>(*rdma_) : *tcp_; }
  void SetPeer(NodeId peer, const std::vector<std::string>& addresses) {
    const Status set = rdma_ != nullptr ? rdma_->SetPeer(peer, addresses)
                                        : tcp_->SetPeer(peer, addresses[0]);
    if (!set.ok()) Fail(set.ToString());
  }
  Task<Result<Network::Answer>> Call(Network::Outgoing request, MutableByteSpan into) {
    const Instant deadline = clock_->Now() + patience_;
    Result<Network::Answer> answer =
        co_await network().Call(kServer, std::move(request), into, deadline);
    if (clock_->Now() > deadline + kHangs) Fail("a call hung past its deadline");
    co_return answer;
  }
  void SetPatience(Nanos patience) { patience_ = patience; }
  // Has memory that payloads lie in.
  void AddRegion(MutableByteSpan memory) {
    RdmaRegion region;
    region.memory = memory;
    if (rdma_ != nullptr && !rdma_->AddRegion(std::move(region)).ok()) Fail("no region");
  }
  // What this node's processor and device have done so far.
  std::string Costs() const {
    char text[400];
    const RdmaNetworkStats none;
    const RdmaNetworkStats& stats = rdma_ != nullptr ? rdma_->stats() : none;
    std::snprintf(text, sizeof(text),
                  "cpu %.3f s, sends %" PRIu64 ", writes %" PRIu64 ", reads %" PRIu64
                  ", copied %" PRIu64 " KiB, registrations %" PRIu64,
                  CpuSeconds(), stats.sends, stats.writes, stats.reads, stats.bytes_copied / 1024,
                  stats.registrations);
    return text;
  }

 private:
  void MakeRdma(NodeId self, const std::vector<std::string>& addresses) {
    const RdmaNetworkOptions options{.self = self,
                                     .addresses = addresses,
                                     .cluster = "driver",
                                     .secret = kSecret,
                                     .connect_timeout = kConnectTimeout,
                                     .reconnect_after = Millis(200),
                                     .silence_max = Millis(500),
                                     .ack_timeout = 16};
    Result<std::unique_ptr<RdmaNetwork>> made =
        RdmaNetwork::Create(*poller_, *clock_, log_, options);
    if (!made.ok()) Fail(made.status().ToString());
    rdma_ = std::move(made).value();
  }
  void MakeTcp(NodeId self, const std::string& address) {
    const TcpNetworkOptions options{.self = self,
                                    .listen = address,
                                    .cluster = "driver",
                                    .secret = kSecret,
                                    .connect_timeout = kConnectTimeout,
                                    .reconnect_after = Millis(200)};
    Result<std::unique_ptr<TcpNetwork>> made =
        TcpNetwork::Create(*poller_, *clock_, log_, options);
    if (!made.ok()) Fail(made.status().ToString());
    tcp_ = std::move(made).value();
  }

  Nanos patience_ = kPatience;
  Loop loop_;
  StderrLog log_;
  std::unique_ptr<Poller> poller_;
  std::unique_ptr<SystemClock> clock_;
  std::unique_ptr<RdmaNetwork> rdma_;
  std::unique_ptr<TcpNetwork> tcp_;
};

// "give SEED SIZE": that pattern. "take SEED": whether the payload is it. "costs": what it cost.
Task<Network::Reply> AnswerCall(Node& node, Bytes body, Bytes payload) {
  std::istringstream words{std::string(AsText(body.span()))};
  std::string verb;
  uint64_t seed = 0;
  size_t size = 0;
  words >> verb >> seed >> size;
  if (verb == "give") co_return Network::Reply(Bytes(), Pattern(seed, size));
  if (verb == "costs") co_return Network::Reply(Bytes::CopyOf(AsBytes(node.Costs())));
  const Bytes expected = Pattern(seed, payload.size());
  const bool same = Same(std::as_const(payload).span(), expected.span());
  co_return Network::Reply(Bytes::CopyOf(AsBytes(same ? "same" : "other")));
}

int Serve(bool rdma, const std::vector<std::string>& addresses) {
  Node node(rdma, kServer, addresses);
  node.network().Serve([&node](NodeId, Bytes body, Bytes payload) {
    return AnswerCall(node, std::move(body), std::move(payload));
  });
  std::printf("serving\n");
  std::fflush(stdout);
  node.poller().RunUntil([] { return false; });
  return 0;
}

class Caller {
 public:
  Caller(bool rdma, const std::vector<std::string>& addresses,
         const std::vector<std::string>& peers)
      : node_(rdma, kCaller, addresses) {
    node_.SetPeer(kServer, peers);
  }

  // Eight calls at a time, half of them each way. How many succeeded.
  int Round() {
    std::vector<Task<bool>> calls;
    for (int i = 0; i < 4; ++i) {
      calls.push_back(Give(random_.Next(), 1 + random_.Below(kPayloadMax)));
      calls.push_back(Take(random_.Next(), 1 + random_.Below(kPayloadMax)));
    }
    int succeeded = 0;
    for (Task<bool>& call : calls) succeeded += node_.poller().Await(std::move(call)) ? 1 : 0;
    return succeeded;
  }
  void SetPatience(Nanos patience) { node_.SetPatience(patience); }
  void Pause() {
    node_.poller().Await(node_.clock().SleepUntil(node_.clock().Now() + Millis(100), nullptr));
  }
  void Count(uint64_t mebibytes);

 private:
  Task<bool> Give(uint64_t seed, size_t size) {
    Bytes into(size);
    const std::string words = "give " + std::to_string(seed) + " " + std::to_string(size);
    Network::Outgoing request(Bytes::CopyOf(AsBytes(words)));
    const Result<Network::Answer> answer = co_await node_.Call(std::move(request), into.span());
    if (!answer.ok()) co_return Failed(answer.status());
    const Bytes expected = Pattern(seed, size);
    if (!Same(std::as_const(into).span(), expected.span())) Fail("wrong bytes were read");
    co_return true;
  }
  Task<bool> Take(uint64_t seed, size_t size) {
    const Bytes payload = Pattern(seed, size);
    const std::string words = "take " + std::to_string(seed);
    Network::Outgoing request(Bytes::CopyOf(AsBytes(words)), {payload.span()});
    const Result<Network::Answer> answer =
        co_await node_.Call(std::move(request), MutableByteSpan());
    if (!answer.ok()) co_return Failed(answer.status());
    if (AsText(answer.value().body.span()) != "same") Fail("wrong bytes were written");
    co_return true;
  }
  std::string Costs() {
    Network::Outgoing request(Bytes::CopyOf(AsBytes("costs")));
    const Result<Network::Answer> answer =
        node_.poller().Await(node_.Call(std::move(request), MutableByteSpan()));
    return answer.ok() ? std::string(AsText(answer.value().body.span())) : "unknown";
  }
  static bool Failed(const Status& status) {
    std::fprintf(stderr, "call: %s\n", status.ToString().c_str());
    return false;
  }

  Node node_;
  Random random_{1};
};

void Caller::Count(uint64_t mebibytes) {
  Bytes into(kMiB);
  node_.AddRegion(into.span());
  Costs();  // Connects.
  std::printf("before: caller: %s\nbefore: server: %s\n", node_.Costs().c_str(), Costs().c_str());
  const Instant begun = node_.clock().Now();
  for (uint64_t i = 0; i < mebibytes; ++i) {
    const std::string words = "give 1 " + std::to_string(kMiB);
    Network::Outgoing request(Bytes::CopyOf(AsBytes(words)));
    const Result<Network::Answer> answer =
        node_.poller().Await(node_.Call(std::move(request), into.span()));
    if (!answer.ok()) Fail(answer.status().ToString());
  }
  const double seconds = static_cast<double>((node_.clock().Now() - begun).value) / 1e9;
  std::printf("after:  caller: %s\nafter:  server: %s\n", node_.Costs().c_str(), Costs().c_str());
  std::printf("%" PRIu64 " MiB in %.3f s\n", mebibytes, seconds);
}

int Call(Caller& caller, int rounds) {
  int succeeded = 0;
  for (int i = 0; i < rounds; ++i) succeeded += caller.Round();
  std::printf("%d of %d calls succeeded\n", succeeded, rounds * 8);
  return succeeded == rounds * 8 ? 0 : 1;
}

int Outlive(Caller& caller) {
  caller.SetPatience(kPatienceInFaults);
  while (caller.Round() < 8) caller.Pause();
  std::printf("calls succeed\n");
  std::fflush(stdout);
  while (caller.Round() > 0) continue;
  std::printf("calls fail\n");
  std::fflush(stdout);
  while (caller.Round() < 8) caller.Pause();
  std::printf("calls succeed again\n");
  return 0;
}

int Main(const std::vector<std::string>& words) {
  const bool rdma = words.at(1) == "rdma";
  const std::string& verb = words.at(2);
  if (verb == "serve") return Serve(rdma, Split(words.at(3)));
  std::vector<std::string> addresses = Split(words.at(3));
  for (std::string& address : addresses) address += ":0";
  Caller caller(rdma, addresses, Split(words.at(4)));
  if (verb == "call") return Call(caller, std::atoi(words.at(5).c_str()));
  if (verb == "outlive") return Outlive(caller);
  if (verb == "count") caller.Count(static_cast<uint64_t>(std::atoll(words.at(5).c_str())));
  return verb == "count" ? 0 : 2;
}

}  // namespace
}  // namespace cairn::kv

int main(int argc, char** argv) {
  return cairn::kv::Main(std::vector<std::string>(argv, argv + argc));
}
