// Safety is judged by the workload, at every answer; here it is decided what breaks, and when.
#include "tests/sim/store_run.h"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <utility>

namespace cairn::sim {
namespace {

// More virtual time than anything in an epoch may take.
constexpr kv::Nanos kHangs = kv::Seconds(900);
constexpr uint64_t kWindowBytes = 256 * kv::kMiB;  // Enough that nothing in memory is evicted.
constexpr uint32_t kRateMax = 40'000;  // Of a fault, out of a million operations.

// The bits of a scenario's fault mask.
enum Kind : uint32_t {
  kReadError,
  kWriteError,
  kBitFlip,
  kTornWrite,
  kLostWrite,
  kMisdirectedWrite,
  kSlow,
  kFullDevice,
  kDown,
  kWipe,
  kCrashAtWrite,
};

}  // namespace

StoreRun::StoreRun(const Scenario& scenario, CrashPoint crash)
    : scenario_(scenario),
      crash_(crash),
      random_(scenario.seed),
      world_(scenario.world),
      workload_(scenario, world_, checker_),
      operator_(scenario, world_, checker_, workload_) {
  if (scenario.mode == StoreMode::kBeyond) workload_.AllowMisses();
  if (scenario.mode == StoreMode::kFull) workload_.AllowMisses();
  if (scenario.mode == StoreMode::kBeyond) workload_.AllowFailedPuts();
  world_.SetOnCrash([this](CrashMode mode) {
    ++crashes_;
    world_.log().Info(mode == CrashMode::kPowerCut ? "--- power cut" : "--- the process dies");
    checker_.Crashed(world_.clock().UnixNow().value, mode == CrashMode::kPowerCut);
    if (history_ != nullptr) history_->Crash(mode);
  });
  world_.node_options.store.cache.bytes_max = scenario.cache_bytes;
  world_.node_options.store.admission = {.policy = scenario.admission,
                                         .drive_writes_per_day = 2'000,
                                         .sightings_max = 4'096};
  world_.node_options.window_bytes = kWindowBytes;
  if (scenario.mode == StoreMode::kFull) world_.node_options.kept_percent_max = 10;
  if (crash.write > 0) world_.CrashAtWrite(crash.write, crash.mode);
}

bool StoreRun::Record(const std::string& path) {
  if (scenario_.keeps || scenario_.drops || scenario_.clock_steps) return false;
  history_ = HistoryLog::Create(path, world_.clock());
  if (history_ == nullptr) return false;
  workload_.Record(*history_);
  return true;
}

std::string StoreRun::Run() {
  for (uint64_t epoch = 0; epoch < scenario_.epochs && workload_.problem().empty(); ++epoch) {
    RunEpoch(epoch);
  }
  writes_ = world_.writes();
  if (workload_.problem().empty()) Settle();
  return workload_.problem();
}

std::string StoreRun::Summary() const {
  const WorkloadStats& stats = workload_.stats();
  std::string text;
  const auto add = [&](const char* name, uint64_t value) {
    text.append(text.empty() ? "" : " ").append(name).append(" ").append(std::to_string(value));
  };
  add("puts", stats.puts);
  add("hits", stats.hits);
  add("misses", stats.misses);
  add("deletes", stats.deletes);
  add("keeps", stats.keeps);
  add("drops", operator_.stats().drops);
  add("steps", operator_.stats().steps);
  add("declined", stats.declined);
  add("degraded", degraded_);
  add("evicted", evicted_);
  add("crashes", crashes_);
  return text;
}

void StoreRun::RunEpoch(uint64_t epoch) {
  over_ = false;
  crashes_before_ = crashes_;
  // Told faults never meet a power cut: the shards that a refused sync left behind are lost then,
  // and count as faults of their own.
  const bool told = scenario_.style == FaultStyle::kTold;
  if (crash_.write == 0 && scenario_.has(kCrashAtWrite) && random_.Chance(1, 2)) {
    const bool power = !told && random_.Chance(1, 2);
    const uint64_t write = 1 + random_.Below(1'500);
    world_.CrashAtWrite(write, power ? CrashMode::kPowerCut : CrashMode::kProcess);
  }
  if (epoch > 0 && scenario_.clock_steps && random_.Chance(1, 2)) {
    operator_.StepClock(random_.Next());
  }
  if (!StartUnderFaults()) {
    if (world_.crashed()) world_.Bury();
    return;
  }
  if (epoch > 0 && !faults_now() && scenario_.mode != StoreMode::kFull) {
    Await(workload_.Audit(StoreWorkload::Wholeness::kUntainted));
  }
  RunSessions();
  EndEpoch();
}

bool StoreRun::StartUnderFaults() {
  if (faults_now()) {
    for (const uint32_t target : scenario_.faulty) {
      kv::Random random(random_.Next());
      DrawFaultsOf(target, random);
    }
  }
  world_.log().Info("--- start");
  const kv::Status started = world_.Start();
  if (started.ok()) return true;
  if (!world_.crashed() && !beyond()) {
    workload_.Fail("the node does not open: " + started.ToString());
  }
  return false;
}

void StoreRun::RunSessions() {
  const auto span = static_cast<int64_t>(1'000 + random_.Below(scenario_.epoch_millis_max));
  const kv::Instant until = world_.clock().Now() + kv::Millis(span);
  const uint64_t draw = random_.Below(3);
  Ending ending = draw == 0 ? Ending::kStop : draw == 1 ? Ending::kCrash : Ending::kPowerCut;
  if (crash_.write > 0) ending = Ending::kStop;
  if (ending == Ending::kPowerCut && scenario_.style == FaultStyle::kTold) ending = Ending::kCrash;
  const kv::Instant end_at = until - kv::Millis(static_cast<int64_t>(random_.Below(1'000)));
  workload_.Begin();
  std::vector<kv::Task<void>> tasks;
  const uint64_t sessions = 1 + random_.Below(scenario_.sessions_max);
  for (uint64_t i = 0; i < sessions; ++i) {
    tasks.push_back(workload_.Session(random_.Next(), until));
  }
  if (faults_now()) tasks.push_back(Chaos(random_.Next()));
  const bool operated = scenario_.scrubs || scenario_.drops || scenario_.clock_steps;
  if (operated) tasks.push_back(operator_.Operate(random_.Next()));
  const uint64_t put_max = scenario_.put_bytes_max;
  const uint64_t put_before = workload_.stats().bytes_put;
  world_.clock().RunUntil([&] {
    const bool enough = workload_.stats().bytes_put - put_before >= put_max;
    return enough || world_.crashed() || world_.clock().Now() >= end_at ||
           !workload_.problem().empty();
  });
  if (ending != Ending::kStop && !world_.crashed() && workload_.problem().empty()) {
    const bool power = ending == Ending::kPowerCut;
    world_.Crash(power ? CrashMode::kPowerCut : CrashMode::kProcess);
  }
  over_ = true;
  workload_.End();
  Await(std::move(tasks));
}

kv::Task<void> StoreRun::Chaos(uint64_t seed) {
  kv::Random random(seed);
  while (!over_ && !world_.crashed()) {
    const auto pause = static_cast<int64_t>(200 + random.Below(8'000));
    const kv::Instant wake_at = world_.clock().Now() + kv::Millis(pause);
    while (!over_ && !world_.crashed() && world_.clock().Now() < wake_at) {
      co_await world_.clock().SleepUntil(world_.clock().Now() + kv::Millis(100), nullptr);
    }
    if (over_ || world_.crashed()) co_return;
    const size_t at = random.Below(scenario_.faulty.size());
    DrawFaultsOf(*std::next(scenario_.faulty.begin(), static_cast<ptrdiff_t>(at)), random);
  }
}

void StoreRun::DrawFaultsOf(uint32_t target, kv::Random& random) {
  DiskFaults faults;
  const auto rate = [&](Kind kind) {
    const bool on = random.Chance(1, 2);
    const auto drawn = static_cast<uint32_t>(random.Below(kRateMax));
    return on && scenario_.has(kind) && !target_lost_ ? drawn : 0;
  };
  const bool silent = scenario_.style == FaultStyle::kSilent;
  const uint32_t often = silent ? 1 : 5;
  faults.read_error = rate(kReadError) * often;
  faults.write_error = rate(kWriteError) * often;
  faults.slow = rate(kSlow);
  if (silent) {
    faults.bit_flip = rate(kBitFlip);
    faults.torn_write = rate(kTornWrite);
    faults.lost_write = rate(kLostWrite);
    faults.misdirected_write = rate(kMisdirectedWrite);
  }
  const bool full = random.Chance(1, 8);
  const bool down = random.Chance(1, 6);
  world_.SetDown(target, down && scenario_.has(kDown) && !target_lost_);
  world_.disk(target).SetFull(full && scenario_.has(kFullDevice) && !target_lost_);
  if (!world_.IsDown(target)) world_.disk(target).SetFaults(faults);
  if (!world_.log().enabled()) return;
  std::string text = std::string("faults of ").append(std::to_string(target)).append(":");
  text.append(world_.IsDown(target) ? " down" : "");
  for (const uint32_t one : {faults.read_error, faults.write_error, faults.bit_flip,
                             faults.torn_write, faults.lost_write, faults.misdirected_write}) {
    text.append(" ").append(std::to_string(one));
  }
  world_.log().Info(text);
}

void StoreRun::EndEpoch() {
  const kv::StoreStats stats = world_.node().stats();
  degraded_ += stats.degraded_reads;
  evicted_ += stats.evicted_stripes;
  CheckCalm(stats);
  CheckEvictions();
  CheckQuotas();
  checker_.Stopped(world_.clock().UnixNow().value);
  if (world_.crashed()) {
    world_.Bury();
  } else {
    const kv::Status stopped = world_.Stop();
    if (!stopped.ok() && !faults_now() && !world_.crashed()) {
      workload_.Fail("a clean stop fails: " + stopped.ToString());
    }
    if (world_.crashed()) world_.Bury();  // While it stopped.
  }
  if (scenario_.style == FaultStyle::kSilent && scenario_.has(kWipe) && random_.Chance(1, 2)) {
    const size_t at = random_.Below(scenario_.faulty.size());
    world_.Wipe(*std::next(scenario_.faulty.begin(), static_cast<ptrdiff_t>(at)));
  }
}

// Without faults nothing may even look like one, until a crash has left stripes in part.
void StoreRun::CheckCalm(const kv::StoreStats& stats) {
  if (faults_now() || checker_.tainted() || world_.crashed()) return;
  if (stats.degraded_reads > 0) workload_.Fail("a read was degraded, and nothing is broken");
  if (stats.corrupt_shards > 0) workload_.Fail("a shard is corrupt, and nothing is broken");
  const auto unavailable = static_cast<size_t>(kv::MissReason::kUnavailable);
  if (stats.misses[unavailable] > 0) {
    workload_.Fail("a block was unavailable, and nothing is broken");
  }
}

// Whatever is missing went with a stripe that was evicted; where there is room nothing goes.
void StoreRun::CheckEvictions() {
  if (scenario_.mode != StoreMode::kFull) {
    if (evicted_ > 0 && !beyond()) workload_.Fail("a stripe was evicted, and there is room");
    return;
  }
  if (faults_now()) return;
  const uint64_t blocks = evicted_ * scenario_.spaces[0].run_blocks;
  if (checker_.missed() > blocks) {
    workload_.Fail(std::to_string(checker_.missed()).append(" blocks went missing, and only ") +
                   std::to_string(evicted_).append(" stripes were evicted"));
  }
}

// What recovery publishes after a crash may be too much, until the next put.
void StoreRun::CheckQuotas() {
  if (crashes_before_ > 0) return;
  for (const kv::SpaceInfo& space : world_.node().striped().Spaces()) {
    const uint64_t quota = space.options.quota_bytes;
    if (quota > 0 && space.stored_bytes > quota) {
      workload_.Fail(space.options.name + " is over its quota");
    }
  }
}

// What was put while targets refused has a shard to spare, so any one target may go.
void StoreRun::LoseTarget() {
  world_.Wipe(static_cast<uint32_t>(random_.Below(world_.count())));
  target_lost_ = true;
}

void StoreRun::Settle() {
  world_.CrashAtWrite(0, CrashMode::kProcess);
  world_.Heal();
  over_ = false;
  if (scenario_.style == FaultStyle::kTold && scenario_.mode == StoreMode::kWithin) LoseTarget();
  const kv::Status started = world_.Start();
  if (!started.ok()) {
    return workload_.Fail("the healed node does not open: " + started.ToString());
  }
  workload_.Begin();
  CheckLiveness();
  evicted_ += world_.node().stats().evicted_stripes;
  degraded_ += world_.node().stats().degraded_reads;
  CheckEvictions();
  const kv::Status stopped = world_.Stop();
  if (!stopped.ok()) workload_.Fail("the healed node does not stop: " + stopped.ToString());
}

void StoreRun::CheckLiveness() {
  using Wholeness = StoreWorkload::Wholeness;
  const bool full = scenario_.mode == StoreMode::kFull;
  Await(workload_.Audit(faults_now() || full ? Wholeness::kAny : Wholeness::kUntainted));
  if (scenario_.scrubs && !full && !beyond()) {
    Await(operator_.ScrubAll());
    Await(workload_.Audit(Wholeness::kAll));
  }
  if (!full) Await(workload_.PutAll());
  if (scenario_.drops || scenario_.deletes) Await(operator_.DeleteAll());
}

void StoreRun::Await(kv::Task<void> task) {
  std::vector<kv::Task<void>> tasks;
  tasks.push_back(std::move(task));
  Await(std::move(tasks));
}

void StoreRun::Await(std::vector<kv::Task<void>> tasks) {
  const kv::Instant limit = world_.clock().Now() + kHangs;
  const auto all_done = [&] {
    for (const kv::Task<void>& task : tasks) {
      if (!task.done()) return false;
    }
    return true;
  };
  world_.clock().RunUntil([&] { return all_done() || world_.clock().Now() >= limit; });
  if (!all_done()) {
    // The coroutines cannot be unwound: say so and go.
    std::printf("a call hangs: it took more than %" PRId64 " s\n", kHangs.value / 1'000'000'000);
    std::fflush(stdout);
    std::abort();
  }
  for (kv::Task<void>& task : tasks) task.Take();
}

}  // namespace cairn::sim
