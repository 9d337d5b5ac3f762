// Block touches a second and core: reading a trace, each simulator alone, and all figures of
// `cairn trace hits`, over a generated trace of growing sessions.
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kvstore/base/random.h"
#include "tests/bench/bench_options.h"
#include "tools/cachesim/lru_curve.h"
#include "tools/cachesim/s3_fifo.h"
#include "tools/cachesim/ttl_curve.h"
#include "tools/planner/trace_report.h"

namespace cairn::tools {
namespace {

constexpr double kAim = 5e6;  // Touches a second, of the report.

// Of this process: others on the machine do not count.
double ProcessorSeconds() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "planner_bench: %s\n", what.c_str());
  std::exit(1);
}

// 2,000 sessions of up to 400 blocks, each request 1 to 8 blocks longer than the one before.
void WriteTrace(const std::string& path, uint64_t touches_wanted) {
  kv::Random random(1);
  std::vector<std::vector<uint64_t>> sessions(2'000);
  std::ofstream file(path);
  uint64_t next_id = 1;
  uint64_t requests = 0;
  std::string line;
  for (uint64_t touches = 0; touches < touches_wanted; ++requests) {
    std::vector<uint64_t>& session = sessions[random.Below(sessions.size())];
    if (session.size() > 400) session.clear();
    const uint64_t added = 1 + random.Below(8);
    for (uint64_t i = 0; i < added; ++i) session.push_back(next_id++);
    line = "{\"timestamp\":" + std::to_string(requests * 10) +
           ",\"input_length\":" + std::to_string(session.size() * 512) +
           ",\"output_length\":100,\"hash_ids\":[";
    for (const uint64_t id : session) line.append(std::to_string(id)).append(",");
    line.back() = ']';
    file << line << "}\n";
    touches += session.size();
  }
  if (!file.flush()) Fail("cannot write " + path);
}

class Bench {
 public:
  explicit Bench(std::string path) : path_(std::move(path)) {}

  nlohmann::json Run() {
    const double reading = TouchesASecond([](const Access&) {});
    Tell("planner.read", reading, 0, "");
    LruCurve lru(512);
    Tell("planner.lru", Alone(lru, reading), reading, "reading");
    TtlCurve ttl(512, UsualTtls());
    Tell("planner.ttl", Alone(ttl, reading), reading, "reading");
    S3Fifo s3_fifo(512, 200'000);
    Tell("planner.s3_fifo", Alone(s3_fifo, reading), reading, "reading");
    const double began = ProcessorSeconds();
    const auto report = ReportTrace(path_, {});
    if (!report.ok()) Fail(report.status().ToString());
    const auto touches = static_cast<double>(report.value().touches);
    Tell("planner.report", touches / (ProcessorSeconds() - began), kAim, "the aim");
    rusage use{};
    getrusage(RUSAGE_SELF, &use);
    const double blocks = static_cast<double>(report.value().unique_tokens) / 512;
    std::printf("  %.1f M touches of %.1f M blocks; at most %.2f GB in memory, %.0f B a block\n",
                touches / 1e6, blocks / 1e6, static_cast<double>(use.ru_maxrss) / 1e6,
                static_cast<double>(use.ru_maxrss) * 1024 / blocks);
    return figures_;
  }

 private:
  template <typename Add>
  double TouchesASecond(Add add) {
    auto source = OpenTrace(path_, {});
    if (!source.ok()) Fail(source.status().ToString());
    const double began = ProcessorSeconds();
    double touches = 0;
    Request request;
    while (true) {
      const auto more = source.value()->Next(request);
      if (!more.ok()) Fail(more.status().ToString());
      if (!more.value()) break;
      add(Access{request.time_ms, request.input_tokens, request.blocks});
      touches += static_cast<double>(request.blocks.size());
    }
    return touches / (ProcessorSeconds() - began);
  }
  // Without what reading takes.
  template <typename Simulator>
  double Alone(Simulator& simulator, double reading) {
    const double both = TouchesASecond([&](const Access& access) { simulator.Add(access); });
    return 1 / (1 / both - 1 / reading);
  }

  void Tell(const char* name, double value, double baseline, const char* against) {
    std::printf("  %-20s %6.2f M touches/s and core", name, value / 1e6);
    if (baseline > 0) std::printf("   %5.2f of %s", value / baseline, against);
    std::printf("\n");
    nlohmann::json figure = {{"name", name}, {"value", value}, {"unit", "touches/s"}};
    figure["baseline"] = baseline > 0 ? nlohmann::json(baseline) : nlohmann::json();
    figure["ratio"] = baseline > 0 ? nlohmann::json(value / baseline) : nlohmann::json();
    figures_.push_back(std::move(figure));
  }

  const std::string path_;
  nlohmann::json figures_ = nlohmann::json::array();
};

}  // namespace
}  // namespace cairn::tools

int main(int count, char** arguments) {
  const cairn::bench::Options options = cairn::bench::ParseOptions(count, arguments);
  const std::string path =
      options.folder + "/planner-bench." + std::to_string(getpid()) + ".jsonl";
  cairn::tools::WriteTrace(path, options.quick ? 10'000'000 : 40'000'000);
  const nlohmann::json figures = cairn::tools::Bench(path).Run();
  std::filesystem::remove(path);
  if (!options.json.empty()) std::ofstream(options.json) << figures.dump(1) << "\n";
  return 0;
}
