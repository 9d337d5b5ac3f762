// Runs a whole store on simulated targets under random work and faults, and checks every answer.
//
// usage: store_sim [--mode within|beyond|full|crash] [--first SEED] [--count N] [--verbose]
//   within  faults that the store must survive: what is owed is there, exact
//   beyond  faults of more targets: exact or missing, and nothing hangs
//   full    a small store: puts go on, by eviction
//   crash   a short workload, run again and again: a crash and a power cut at each of its writes
// To look closer: --log tells what is done and what breaks, in virtual time; --write N [--power]
// runs one crash of a sweep again. --history FILE writes what was done and got in the last run.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "tests/sim/store_run.h"

namespace cairn::sim {
namespace {

struct Arguments {
  uint64_t first = 1;
  uint64_t count = 1;
  StoreMode mode = StoreMode::kWithin;
  std::string history;
  uint64_t write = 0;
  bool power = false;
  bool verbose = false;
  bool log = false;
};

const char* NameOf(StoreMode mode) {
  switch (mode) {
    case StoreMode::kWithin: return "within";
    case StoreMode::kBeyond: return "beyond";
    case StoreMode::kFull: return "full";
    case StoreMode::kCrash: return "crash";
  }
  return "";
}

std::optional<StoreMode> ModeOf(const std::string& name) {
  for (const StoreMode mode :
       {StoreMode::kWithin, StoreMode::kBeyond, StoreMode::kFull, StoreMode::kCrash}) {
    if (name == NameOf(mode)) return mode;
  }
  return std::nullopt;
}

std::optional<Arguments> Parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const bool has_value = i + 1 < argc;
    if (flag == "--verbose") {
      arguments.verbose = true;
    } else if (flag == "--log") {
      arguments.log = true;
    } else if (flag == "--power") {
      arguments.power = true;
    } else if (flag == "--first" && has_value) {
      arguments.first = std::strtoull(argv[++i], nullptr, 10);
    } else if (flag == "--count" && has_value) {
      arguments.count = std::strtoull(argv[++i], nullptr, 10);
    } else if (flag == "--history" && has_value) {
      arguments.history = argv[++i];
    } else if (flag == "--write" && has_value) {
      arguments.write = std::strtoull(argv[++i], nullptr, 10);
    } else if (flag == "--mode" && has_value) {
      const auto mode = ModeOf(argv[++i]);
      if (!mode) return std::nullopt;
      arguments.mode = *mode;
    } else {
      return std::nullopt;
    }
  }
  return arguments;
}

// False when something went wrong. `writes` of the run, for a sweep.
bool RunOne(const Arguments& arguments, uint64_t seed, CrashPoint crash, uint64_t* writes) {
  const Scenario scenario = DrawScenario(seed, arguments.mode);
  StoreRun run(scenario, crash);
  if (arguments.log) run.LogAll();
  if (!arguments.history.empty() && !run.Record(arguments.history)) {
    std::printf("no history of this seed\n");
    return false;
  }
  const std::string problem = run.Run();
  if (writes != nullptr) *writes = run.writes();
  if (arguments.verbose || !problem.empty()) {
    std::printf("seed %" PRIu64 " events %" PRIu64 " hash %016" PRIx64 " %s\n", seed,
                run.trace().count(), run.trace().hash(), run.Summary().c_str());
  }
  if (problem.empty()) return true;
  std::printf("seed %" PRIu64 " FAILS: %s\n", seed, problem.c_str());
  std::printf("again: store_sim --mode %s --first %" PRIu64, NameOf(arguments.mode), seed);
  if (crash.write > 0) std::printf(" --write %" PRIu64, crash.write);
  if (crash.write > 0 && crash.mode == CrashMode::kPowerCut) std::printf(" --power");
  std::printf(" --log\n");
  return false;
}

bool Sweep(const Arguments& arguments, uint64_t seed) {
  uint64_t writes = 0;
  if (!RunOne(arguments, seed, {}, &writes)) return false;
  for (uint64_t write = 1; write <= writes; ++write) {
    for (const CrashMode mode : {CrashMode::kProcess, CrashMode::kPowerCut}) {
      if (!RunOne(arguments, seed, {.write = write, .mode = mode}, nullptr)) return false;
    }
  }
  std::printf("seed %" PRIu64 ": a crash and a power cut at each of %" PRIu64 " writes\n", seed,
              writes);
  return true;
}

int Main(int argc, char** argv) {
  const auto arguments = Parse(argc, argv);
  if (!arguments) {
    std::fprintf(stderr,
                 "usage: store_sim [--mode within|beyond|full|crash] [--first SEED] [--count N]"
                 " [--verbose] [--log] [--history FILE] [--write N [--power]]\n");
    return 2;
  }
  for (uint64_t seed = arguments->first; seed < arguments->first + arguments->count; ++seed) {
    const bool sweep = arguments->mode == StoreMode::kCrash && arguments->write == 0;
    const CrashPoint crash{
        .write = arguments->write,
        .mode = arguments->power ? CrashMode::kPowerCut : CrashMode::kProcess};
    const bool fine = sweep ? Sweep(*arguments, seed) : RunOne(*arguments, seed, crash, nullptr);
    if (!fine) return 1;
  }
  return 0;
}

}  // namespace
}  // namespace cairn::sim

int main(int argc, char** argv) { return cairn::sim::Main(argc, argv); }
