// Flags into options, and the report as a table or JSON.
#include "tools/replay/replay_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/planner/command_support.h"
#include "tools/planner/quantity.h"
#include "tools/replay/replay.h"
#include "tools/trace/transform.h"

namespace cairn::tools {
namespace {

struct Flags {
  std::string path;
  std::string format = "auto";
  std::string capacity = "1 GiB";
  std::string spread = "0 s";
  std::string poller = "auto";
  TraceOptions trace;
  SampleOptions sample;
  ReplayOptions replay{.bytes_per_token = 64};
  bool json = false;
};

class StandardError final : public kv::Log {
 public:
  void Write(kv::LogLevel level, std::string_view message) override {
    if (level < kv::LogLevel::kWarning) return;
    std::fprintf(stderr, "%.*s\n", static_cast<int>(message.size()), message.data());
  }
};

double Micros(std::vector<int64_t> nanos, double share) {
  if (nanos.empty()) return 0;
  const auto at = static_cast<size_t>(share * static_cast<double>(nanos.size() - 1));
  std::nth_element(nanos.begin(), nanos.begin() + static_cast<ptrdiff_t>(at), nanos.end());
  return static_cast<double>(nanos[at]) / 1e3;
}

std::string Line(std::string_view name, const std::string& value) {
  return fmt::format("{:<34}{:>16}\n", name, value);
}

std::string Percent(double share) { return fmt::format("{:.2f} %", share * 100); }

std::string Count(uint64_t count) { return WithCommas(static_cast<double>(count), 0); }

std::string Latency(const std::vector<int64_t>& nanos) {
  return fmt::format("{:.0f} / {:.0f} / {:.0f} us", Micros(nanos, 0.5), Micros(nanos, 0.95),
                     Micros(nanos, 0.99));
}

constexpr int kExitUsage = 2;  // As for the other verbs (cairn(1)).

std::string SpaceText(const SpaceUse& space) {
  const double all = space.live + space.overhead + space.dead + space.free;
  return fmt::format("{:.1f} / {:.1f} / {:.1f} / {:.1f} %", 100 * space.live / all,
                     100 * space.overhead / all, 100 * space.dead / all, 100 * space.free / all);
}

std::string MeasuredText(const ReplayReport& report) {
  std::string text = Line("Hit tokens", Count(report.hit_tokens));
  text += Line("Token hit rate", Percent(report.HitRate()));
  text += Line("Wrong bytes", "0");
  text += Line("Blocks read and verified", Count(report.driver.blocks_read));
  text += Line("Blocks gone between Lookup and Get", Count(report.driver.blocks_lost));
  text += Line("Blocks that could not be put", Count(report.driver.puts_failed));
  text += Line("Stripes begun in vain", Count(report.store.dropped_stripes));
  text += Line("Evicted stripes", Count(report.store.evicted_stripes));
  text += Line("Write amplification", fmt::format("{:.3f}", report.WriteAmplification()));
  text += Line("Lookup, median / p95 / p99", Latency(report.driver.lookup_nanos));
  text += Line("Get", Latency(report.driver.get_nanos));
  text += Line("Put", Latency(report.driver.put_nanos));
  return text;
}

std::string PredictedText(const ReplayReport& report) {
  const ReplayReport::Predicted& predicted = *report.predicted;
  std::string text = Line("Predicted hit rate", Percent(predicted.hit_rate));
  if (report.measured) {
    text += Line("  measured above predicted",
                 fmt::format("{:+.2f} points", (report.HitRate() - predicted.hit_rate) * 100));
  }
  text += Line("Predicted write amplification",
               fmt::format("{:.3f}", predicted.write_amplification));
  text += Line("  live / overhead / dead / free", SpaceText(predicted.space));
  text += Line("Ideal LRU of this capacity", Percent(predicted.lru_hit_rate));
  text += Line("A cache that forgets nothing", Percent(predicted.unbounded_hit_rate));
  return text;
}

std::string Text(const ReplayReport& report) {
  std::string text = Line("Requests", Count(report.requests));
  text += Line("Prompt tokens", Count(report.prompt_tokens));
  if (report.measured) text += MeasuredText(report);
  if (report.predicted) text += PredictedText(report);
  return text;
}

std::string Json(const ReplayReport& report) {
  const auto latency = [](const std::vector<int64_t>& nanos) {
    return nlohmann::ordered_json{{"p50", Micros(nanos, 0.5)},
                                  {"p95", Micros(nanos, 0.95)},
                                  {"p99", Micros(nanos, 0.99)}};
  };
  nlohmann::ordered_json json{{"requests", report.requests},
                              {"prompt_tokens", report.prompt_tokens}};
  if (report.measured) {
    json.update({{"hit_tokens", report.hit_tokens},
                 {"hit_rate", report.HitRate()},
                 {"wrong_bytes", 0},
                 {"blocks_read", report.driver.blocks_read},
                 {"blocks_lost", report.driver.blocks_lost},
                 {"puts_failed", report.driver.puts_failed},
                 {"dropped_stripes", report.store.dropped_stripes},
                 {"evicted_stripes", report.store.evicted_stripes},
                 {"write_amplification", report.WriteAmplification()},
                 {"seconds", report.seconds},
                 {"lookup_us", latency(report.driver.lookup_nanos)},
                 {"get_us", latency(report.driver.get_nanos)},
                 {"put_us", latency(report.driver.put_nanos)}});
  }
  if (report.predicted) {
    const SpaceUse& space = report.predicted->space;
    json["predicted"] = {{"hit_rate", report.predicted->hit_rate},
                         {"write_amplification", report.predicted->write_amplification},
                         {"lru_hit_rate", report.predicted->lru_hit_rate},
                         {"unbounded_hit_rate", report.predicted->unbounded_hit_rate},
                         {"space_bytes",
                          {{"live", space.live},
                           {"overhead", space.overhead},
                           {"dead", space.dead},
                           {"free", space.free}}}};
  }
  return json.dump(2) + "\n";
}

kv::Status Run(Flags flags, CommandResult& result) {
  KV_ASSIGN_OR_RETURN(flags.trace.format, ParseTraceFormat(flags.format));
  KV_ASSIGN_OR_RETURN(const double spread, ParseQuantity(flags.spread, Unit::kSeconds));
  KV_ASSIGN_OR_RETURN(const double capacity, ParseQuantity(flags.capacity, Unit::kBytes));
  flags.trace.spread_ms = static_cast<int64_t>(spread * 1e3);
  // What is no number of bytes is refused as none, or as too many.
  flags.replay.capacity_bytes =
      capacity > 0 ? static_cast<uint64_t>(std::min(capacity, 0x1p60)) : 0;
  flags.sample.seed = flags.trace.seed;
  KV_ASSIGN_OR_RETURN(auto source, OpenTrace(flags.path, flags.trace));
  if (flags.sample.share != 1) {
    KV_ASSIGN_OR_RETURN(source, Sample(std::move(source), flags.sample));
  }
  KV_ASSIGN_OR_RETURN(flags.replay.poller, kv::ParsePollerEngine(flags.poller));
  if (::isatty(STDERR_FILENO) != 0) {
    flags.replay.progress = [](uint64_t requests) {
      if (requests % 100 != 0) return;
      std::fprintf(stderr, "\r%llu requests", static_cast<unsigned long long>(requests));
    };
  }
  StandardError log;
  const auto replayed = Replay(*source, flags.replay, log);
  if (flags.replay.progress) std::fprintf(stderr, "\r\033[K");
  KV_RETURN_IF_ERROR(replayed.status());
  const ReplayReport& report = replayed.value();
  result.output = flags.json ? Json(report) : Text(report);
  for (const std::string& issue : source->issues().first) result.errors += issue + "\n";
  return kv::Status();
}

}  // namespace

CommandResult ReplayCommand(const std::vector<std::string>& arguments, const AppVisitor& visit) {
  CLI::App app("Drives a real store with a trace and verifies every byte.", "cairn replay");
  Flags flags;
  app.add_option("trace", flags.path, "The file, plain or gzip")->required();
  CLI::Option* data =
      app.add_option("--data", flags.replay.data_dir, "An empty folder for a store of its own");
  app.add_option("--connect", flags.replay.connect,
                 "Drive a running store instead: unix:PATH or HOST:PORT. It keeps its own "
                 "calendar: ages are those of the replay")
      ->excludes(data);
  app.add_option("--capacity", flags.capacity, "Of the store, raw, over 12 targets: '2 GiB'");
  app.add_option("--bytes-per-token", flags.replay.bytes_per_token, "KV of a token, scaled down");
  app.add_option("--block-tokens", flags.trace.block_tokens, "Join blocks to this size");
  app.add_option("--requests", flags.replay.requests_max, "Stop after this many");
  app.add_option("--sample", flags.sample.share, "Keep this share of the sessions");
  app.add_option("--seed", flags.trace.seed, "Of everything random");
  app.add_option("--spread", flags.spread, "Sessions start at random points of this span");
  app.add_option("--format", flags.format, "auto, mooncake, bailian, sessions or text");
  app.add_option("--poller", flags.poller, "io_uring, epoll, or auto: the first that is permitted")
      ->envname("CAIRN_POLLER");
  app.add_option("--read-share", flags.replay.read_share,
                 "Read and verify the hits of this share of the requests (default: 1, all)");
  app.add_flag("--answers", flags.replay.answers, "Store answers, too");
  app.add_flag("--predict", flags.replay.predict, "Also say what the simulator expected");
  app.add_flag("--predict-only", flags.replay.predict_only,
               "Say what the simulator expects of such a store, and drive none");
  app.add_flag("--json", flags.json, "Print all figures as JSON");
  return RunParsed(app, arguments, visit, [&](CommandResult& result) {
    kv::Status status = Run(flags, result);
    if (status.code() == kv::Code::kInvalid) result.exit_code = kExitUsage;
    return status;
  });
}

int RunReplay(int argc, char** argv) {
  const CommandResult result =
      ReplayCommand(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
  std::fwrite(result.output.data(), 1, result.output.size(), stdout);
  std::fwrite(result.errors.data(), 1, result.errors.size(), stderr);
  return result.exit_code;
}

}  // namespace cairn::tools
