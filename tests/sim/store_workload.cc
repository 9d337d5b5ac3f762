// Every answer is judged when it comes, against what was done until then.
#include "tests/sim/store_workload.h"

#include <algorithm>
#include <utility>

namespace cairn::sim {
namespace {

// No operation of the simulated devices takes longer; a deadline is kept within a few of them.
constexpr kv::Nanos kLatenessMax = kv::Seconds(1);
// What is told of calls without a deadline: that they end at all is checked by StoreRun.
constexpr kv::Nanos kForever = kv::Seconds(900);
// The history knows nothing of namespaces that a crash ends.
constexpr uint64_t kNotRecorded = 0;

}  // namespace

StoreWorkload::StoreWorkload(const Scenario& scenario, StoreWorld& world, StoreChecker& checker)
    : scenario_(scenario), world_(world), checker_(checker), lease_draws_(scenario.seed + 1),
      drops_(scenario.spaces.size(), 0) {
  for (const SimChain& chain : scenario.chains) {
    const kv::NamespaceOptions& space = scenario.spaces[chain.space];
    for (size_t i = 0; i < chain.ids.size(); ++i) {
      const kv::BlockId leader = chain.ids[i - i % space.run_blocks];
      const kv::RunId run{{leader.high, leader.low}};
      checker.Declare(chain.key(i), chain.sizes[i], run, space);
    }
  }
}

void StoreWorkload::Fail(const std::string& what) {
  world_.log().Error("PROBLEM: " + what);
  if (problem_.empty()) problem_ = what;
}

void StoreWorkload::Tell(const char* what, const SimChain& chain, size_t first, size_t end,
                         const std::string& outcome) {
  if (!world_.log().enabled()) return;
  std::string text = std::string(what).append(" of chain ");
  text.append(std::to_string(&chain - scenario_.chains.data())).append(" in ");
  text.append(scenario_.spaces[chain.space].name).append(":");
  for (size_t i = first; i < end; ++i) {
    text.append(" ").append(std::to_string(i)).append("=");
    text.append(chain.ids[i].ToHex().substr(0, 6));
  }
  world_.log().Info(text.append(": ").append(outcome));
}

std::vector<uint64_t> StoreWorkload::BeginRecord(const HistoryLog::Call& call,
                                                 const std::vector<BlockKey>& keys,
                                                 std::optional<HistoryLog::PutTerms> terms) {
  std::vector<uint64_t> operations;
  if (history_ == nullptr) return operations;
  for (const BlockKey& key : keys) {
    const bool memory = scenario_.spaces[key.space].medium == kv::Medium::kMemory;
    operations.push_back(memory ? kNotRecorded : history_->Begin(call, key, terms));
  }
  return operations;
}

void StoreWorkload::EndRecord(const std::vector<uint64_t>& operations, size_t i,
                              std::string_view result, kv::ByteSpan bytes) {
  if (history_ == nullptr || operations[i] == kNotRecorded) return;
  history_->End(operations[i], result, bytes);
}

// After a crash errors mean nothing, but bytes still do.
void StoreWorkload::RecordRead(const std::vector<uint64_t>& operations, size_t i,
                               const kv::BlockReadResult& result, kv::ByteSpan bytes) {
  if (result.status.ok()) return EndRecord(operations, i, "ok", bytes.first(result.size));
  const bool missed = result.status.code() == kv::Code::kNotFound && !world_.crashed();
  EndRecord(operations, i, missed ? "miss" : "failed");
}

kv::Task<void> StoreWorkload::Session(uint64_t seed, kv::Instant until) {
  kv::Random random(seed);
  while (!Over() && world_.clock().Now() < until) {
    const Spaces spaces = co_await Attach();
    if (!spaces.ok || Over()) co_return;
    const SimChain& chain = scenario_.chains[random.Below(scenario_.chains.size())];
    const auto length = static_cast<uint32_t>(chain.ids.size());
    const uint32_t found = co_await LookUp(spaces, chain);
    if (!Over() && random.Chance(9, 10)) {
      const uint64_t draw = random.Next();
      std::vector<uint32_t> wanted = DrawWanted(chain, found, draw);
      co_await Read(spaces, chain, std::move(wanted), random.Next(), Patience::kDrawn);
    }
    if (found < length && !Over()) {
      const auto count =
          static_cast<uint32_t>(1 + random.Below(std::min<uint64_t>(10, length - found)));
      co_await Put(spaces, chain, found, count, random.Next());
    }
    const bool keeps = scenario_.keeps && chain.space == kKeptSpace;
    if (keeps && found > 0 && !Over() && random.Chance(1, 8)) {
      co_await Keep(spaces, chain, found, random.Next());
    }
    if (scenario_.deletes && !Over() && random.Chance(1, 16)) {
      co_await Delete(spaces, chain, static_cast<uint32_t>(random.Below(length)));
    }
    const auto pause = static_cast<int64_t>(random.Below(scenario_.pause_millis_max));
    const kv::Instant wake_at = world_.clock().Now() + kv::Millis(pause);
    if (!Over()) co_await world_.clock().SleepUntil(wake_at, nullptr);
  }
}

kv::UnixMillis StoreWorkload::DrawKeep(uint64_t seed) const {
  kv::Random random(seed);
  return {(UnixNow() / 1000 + 5 + static_cast<int64_t>(random.Below(40))) * 1000};
}

kv::Task<void> StoreWorkload::Keep(const Spaces& spaces, const SimChain& chain, uint32_t count,
                                   uint64_t seed) {
  const kv::UnixMillis until = DrawKeep(seed);
  const StoreChecker::Moment began = Now();
  const std::vector<kv::BlockId> ids(chain.ids.begin(), chain.ids.begin() + count);
  // A touch is a hit, too.
  const StoreChecker::Access access = checker_.BeginLook(chain.keys(0, count), began);
  for (uint32_t i = 0; i < count; ++i) checker_.BeginKeep(chain.key(i), until.value);
  const auto outcomes =
      co_await world_.node().store().Touch(spaces.ids[chain.space], ids, 0, until);
  checker_.EndLook(access, Now());
  if (world_.crashed()) co_return;
  Tell("keep", chain, 0, count, outcomes.empty() ? "-" : outcomes[0].ToString());
  for (uint32_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i].ok()) {
      checker_.Kept(chain.key(i), until.value, began, Now());
      ++stats_.keeps;
    } else if (outcomes[i].code() == kv::Code::kNotFound && !WasDropped(spaces, chain) &&
               !misses_allowed_ && checker_.OwedSince(access, i, UnixNow())) {
      Fail("a block that is owed cannot be kept: " + outcomes[i].ToString());
    }
  }
}

bool StoreWorkload::MayRefuse(const Spaces& spaces, const SimChain& chain, bool keep,
                              kv::Code code) const {
  // What is there already may expire or be evicted before it can be kept.
  const bool declines = keep || scenario_.admission != kv::AdmissionPolicy::kAll;
  const bool quota_binds =
      scenario_.mode == StoreMode::kFull && scenario_.spaces[chain.space].quota_bytes > 0;
  // Targets that refuse writes soon have no segment left, in stores of a few.
  const bool told = scenario_.style == FaultStyle::kTold;
  if (scenario_.mode == StoreMode::kFull && told && code == kv::Code::kNoSpace) return true;
  return (code == kv::Code::kNotFound && (declines || WasDropped(spaces, chain))) ||
         (code == kv::Code::kOverloaded && quota_binds);
}

kv::Task<StoreWorkload::Spaces> StoreWorkload::Attach() {
  Spaces spaces;
  spaces.drops = drops_;
  for (const kv::NamespaceOptions& options : scenario_.spaces) {
    auto space = co_await world_.node().store().Attach(options);
    if (!space.ok()) {
      if (!world_.crashed() && !failed_puts_allowed_) Fail("attach: " + space.status().ToString());
      co_return spaces;
    }
    spaces.ids.push_back(space.value());
  }
  spaces.ok = true;
  co_return spaces;
}

// Mostly some of what was found; sometimes also what was not.
std::vector<uint32_t> StoreWorkload::DrawWanted(const SimChain& chain, uint32_t found,
                                                uint64_t seed) const {
  kv::Random random(seed);
  const bool all = random.Chance(1, 8);
  const uint32_t end = all ? static_cast<uint32_t>(chain.ids.size()) : found;
  std::vector<uint32_t> wanted;
  for (uint32_t i = 0; i < end; ++i) {
    if (wanted.size() < 6 && random.Chance(1, 2)) wanted.push_back(i);
  }
  return wanted;
}

kv::Task<uint32_t> StoreWorkload::LookUp(const Spaces& spaces, const SimChain& chain) {
  const StoreChecker::Access access = checker_.BeginLook(chain.keys(0, chain.ids.size()), Now());
  const bool leased = scenario_.leases && lease_draws_.Chance(1, 4);
  const auto seconds = static_cast<int64_t>(1 + lease_draws_.Below(10));
  const kv::LeaseOrder order{.session = {}, .duration = kv::Seconds(leased ? seconds : 0)};
  const HistoryLog::Call look{"look", kForever};
  const std::vector<uint64_t> recorded = BeginRecord(look, access.keys);
  auto hit = co_await world_.node().store().Lookup(spaces.ids[chain.space], chain.ids, order);
  checker_.EndLook(access, Now());
  for (size_t i = 0; i < recorded.size(); ++i) EndRecord(recorded, i, "ok");
  if (world_.crashed()) co_return 0;
  const bool dropped = WasDropped(spaces, chain);
  if (!hit.ok()) {
    if (dropped) co_return 0;
    Fail("lookup: " + hit.status().ToString());
    co_return 0;
  }
  const kv::ChainHit& found = hit.value();
  const auto why = std::to_string(static_cast<int>(found.miss));
  Tell("lookup", chain, 0, found.blocks, std::string("then reason ").append(why) +
           (found.lease.value != 0 ? ", leased" : ""));
  for (uint32_t i = 0; i < found.blocks; ++i) {
    const std::string judged = checker_.JudgeFound(access, i, found.sizes[i]);
    if (!judged.empty()) Fail("lookup finds " + judged);
    if (dropped) continue;
    checker_.Hit(chain.key(i), access.began);
    const int64_t lease_millis = found.lease_for.value / 1'000'000;
    if (found.lease.value != 0) checker_.Leased(chain.key(i), UnixNow() + lease_millis - 1);
  }
  if (dropped || found.blocks == chain.ids.size()) co_return found.blocks;
  const BlockKey missing = chain.key(found.blocks);
  if (checker_.OwedSince(access, found.blocks, UnixNow())) {
    const std::string reason = std::to_string(static_cast<int>(found.miss));
    const bool held = !beyond() && checker_.HeldSince(access, found.blocks, UnixNow());
    if (held) Fail("lookup hides a leased block, reason " + reason);
    if (!misses_allowed_) Fail(std::string("lookup hides a block, reason ").append(reason));
    if (!misses_allowed_) co_await DescribeRun(spaces, chain, found.blocks);
    checker_.Missed(missing);
  }
  co_return found.blocks;
}

kv::Task<void> StoreWorkload::Read(const Spaces& spaces, const SimChain& chain,
                                   std::vector<uint32_t> wanted, uint64_t seed,
                                   Patience patience) {
  kv::Random random(seed);
  std::vector<kv::BlockRead> reads;
  std::vector<kv::Bytes> rooms;
  std::vector<BlockKey> keys;
  for (const uint32_t i : wanted) {
    const uint64_t shift = random.Chance(1, 4) ? 1 + random.Below(64) : 0;
    rooms.emplace_back(kv::AlignUp(chain.sizes[i], kv::kSectorSize) + shift);
    reads.push_back({chain.ids[i], rooms.back().span().subspan(shift)});
    keys.push_back(chain.key(i));
  }
  const std::vector<kv::BlockRead> asked = reads;
  const bool impatient = patience == Patience::kDrawn && random.Chance(1, 10);
  const kv::Nanos wait = kv::Micros(static_cast<int64_t>(random.Below(3'000)));
  const kv::Instant deadline = impatient ? world_.clock().Now() + wait : kv::kNever;
  const StoreChecker::Access access = checker_.BeginLook(std::move(keys), Now());
  const HistoryLog::Call get{"get", impatient ? wait : kForever};
  const std::vector<uint64_t> recorded = BeginRecord(get, access.keys);
  auto results = co_await world_.node().store().Get(spaces.ids[chain.space], chain.ids,
                                                    std::move(reads), deadline);
  checker_.EndLook(access, Now());
  if (impatient && world_.clock().Now() > deadline + kLatenessMax) Fail("get ignores its deadline");
  for (size_t i = 0; i < results.size(); ++i) {
    Tell("get", chain, wanted[i], wanted[i] + 1, results[i].status.ToString());
    RecordRead(recorded, i, results[i], asked[i].into);
    const bool fine = problem_.empty();
    JudgeRead(access, i, results[i], asked[i].into, impatient, WasDropped(spaces, chain));
    if (fine && !problem_.empty()) co_await DescribeRun(spaces, chain, wanted[i]);
  }
}

kv::Task<void> StoreWorkload::DescribeRun(const Spaces& spaces, const SimChain& chain, size_t at) {
  if (!world_.log().enabled() || world_.crashed()) co_return;
  const kv::BlockId leader = chain.ids[at - at % scenario_.spaces[chain.space].run_blocks];
  const kv::RunKey key{spaces.ids[chain.space], {{leader.high, leader.low}}};
  for (const auto& target : world_.node().targets()) {
    auto stripes = co_await target->LookUp(key.space, key.run);
    std::string text = std::string("index of ").append(target->label()).append(":");
    if (!stripes.ok()) text.append(" ").append(stripes.status().ToString());
    if (stripes.ok()) {
      for (const kv::IndexedStripe& stripe : stripes.value()) {
        const kv::Manifest& manifest = stripe.manifest;
        text.append("\n  ").append(manifest.stripe.ToHex().substr(0, 8)).append(" shards at");
        for (uint8_t i = 0; i < manifest.shard_count(); ++i) {
          for (const auto& holder : world_.node().targets()) {
            if (holder->id() != manifest.targets[i]) continue;
            const bool there = holder->MayHold(manifest.stripe, {i});
            text.append(there ? " " : " NOT ").append(holder->label());
          }
        }
        text.append(" +").append(std::to_string(manifest.parity_shards)).append(", blocks");
        for (const kv::ManifestBlock& block : manifest.blocks) {
          text.append(" ").append(block.id.ToHex().substr(0, 6));
        }
      }
    }
    world_.log().Info(text);
  }
}

void StoreWorkload::JudgeRead(const StoreChecker::Access& access, size_t i,
                              const kv::BlockReadResult& result, kv::ByteSpan bytes,
                              bool may_be_late, bool dropped) {
  const BlockKey key = access.keys[i];
  ++(result.status.ok() ? stats_.hits : stats_.misses);
  if (result.status.ok()) {
    const std::string judged = checker_.JudgeBytes(access, i, result.size, bytes);
    if (!judged.empty()) Fail("get serves " + judged);
    if (!world_.crashed() && !dropped) checker_.Hit(key, access.began);
    return;
  }
  // After the crash errors mean nothing, but bytes still do.
  if (world_.crashed() || dropped) return;
  const kv::Code code = result.status.code();
  if (code == kv::Code::kDeadline && may_be_late) return;
  if (code != kv::Code::kNotFound && code != kv::Code::kUnavailable) {
    Fail("get: " + result.status.ToString());
  }
  if (!checker_.OwedSince(access, i, UnixNow())) return;
  const bool held = !beyond() && checker_.HeldSince(access, i, UnixNow());
  if (held) Fail("a leased block is missing: " + result.status.ToString());
  if (!misses_allowed_) Fail("a block that is owed is missing: " + result.status.ToString());
  checker_.Missed(key);
}

kv::Task<void> StoreWorkload::Put(const Spaces& spaces, const SimChain& chain, uint32_t first,
                                  uint32_t count, uint64_t seed) {
  kv::Random random(seed);
  kv::ChainPut put;
  put.space = spaces.ids[chain.space];
  put.chain = chain.ids;
  put.first = first;
  const bool durable = random.Chance(1, 4);
  put.ack = durable ? kv::Ack::kDurable : kv::Ack::kCached;
  int64_t ttl = TtlMillis(scenario_.spaces[chain.space]);
  if (scenario_.own_ttls && random.Chance(1, 4)) {
    put.ttl_seconds = static_cast<uint32_t>(5 + random.Below(30));
    ttl = int64_t{*put.ttl_seconds} * 1000;
  }
  const StoreChecker::Moment began = Now();
  if (scenario_.keeps && chain.space == kKeptSpace && random.Chance(1, 4)) {
    put.keep_until = DrawKeep(random.Next());
  }
  const int64_t keep_until = put.keep_until.value;
  std::vector<uint64_t> recorded;
  uint64_t bytes = 0;
  for (uint32_t i = first; i < first + count; ++i) {
    put.blocks.push_back({chain.ids[i], checker_.BytesOf(chain.key(i))});
    bytes += chain.sizes[i];
    checker_.BeginPut(chain.key(i), began, ttl);
    if (keep_until > 0) checker_.BeginKeep(chain.key(i), keep_until);
    const HistoryLog::PutTerms terms{
        .ttl_millis = ttl,
        .refreshed = scenario_.spaces[chain.space].retention == kv::RetentionKind::kRefreshed,
        .durable = durable,
        .bytes = checker_.BytesOf(chain.key(i))};
    const HistoryLog::Call call{"put", kForever};
    for (const uint64_t one : BeginRecord(call, {chain.key(i)}, terms)) recorded.push_back(one);
  }
  auto outcomes = co_await world_.node().store().Put(std::move(put));
  const StoreChecker::Moment now = Now();
  for (uint32_t i = 0; i < outcomes.size(); ++i) {
    Tell(durable ? "durable put" : "put", chain, first + i, first + i + 1, outcomes[i].ToString());
    // The answer of a process that is dead reaches nobody.
    kv::Status outcome = std::move(outcomes[i]);
    if (world_.crashed()) outcome = kv::Status(kv::Code::kUnavailable, "crashed");
    EndRecord(recorded, i, outcome.ok() ? "ok" : "refused");
    checker_.EndPut(chain.key(first + i), outcome, durable, began, now, ttl);
    stats_.puts += outcome.ok() ? 1 : 0;
    if (outcome.ok() && keep_until > 0) {
      checker_.Kept(chain.key(first + i), keep_until, began, now);
      ++stats_.keeps;
    }
    if (outcome.ok() || world_.crashed() || failed_puts_allowed_) continue;
    stats_.declined += outcome.code() == kv::Code::kNotFound ? 1 : 0;
    if (MayRefuse(spaces, chain, keep_until > 0, outcome.code())) continue;
    Fail("put: " + outcome.ToString());
  }
  stats_.bytes_put += bytes;
}

kv::Task<void> StoreWorkload::Delete(const Spaces& spaces, const SimChain& chain, uint32_t first) {
  const StoreChecker::Access access =
      checker_.BeginDelete(chain.keys(first, chain.ids.size()), Now());
  const std::vector<BlockKey> mates = checker_.RunMatesOf(access.keys);
  const HistoryLog::Call call{"delete", kForever};
  const std::vector<uint64_t> recorded = BeginRecord(call, access.keys);
  const std::vector<uint64_t> perhaps = BeginRecord(call, mates);
  const kv::Status outcome =
      co_await world_.node().store().Delete(spaces.ids[chain.space], chain.ids, first);
  // A target that is left out may bring them back when it returns.
  const bool all_there = world_.node().targets().size() == world_.count();
  const bool done = outcome.ok() && all_there && !world_.crashed();
  checker_.EndDelete(access, done, Now());
  for (size_t i = 0; i < recorded.size(); ++i) EndRecord(recorded, i, done ? "ok" : "failed");
  for (size_t i = 0; i < perhaps.size(); ++i) EndRecord(perhaps, i, "perhaps");
  Tell("delete", chain, first, chain.ids.size(), outcome.ToString());
  ++stats_.deletes;
}

kv::Task<void> StoreWorkload::Audit(Wholeness wanted) {
  const bool whole = wanted != Wholeness::kAny;
  const Spaces spaces = co_await Attach();
  if (!spaces.ok) {
    if (!world_.crashed()) Fail("no namespaces to audit");
    co_return;
  }
  for (const SimChain& chain : scenario_.chains) {
    if (Over()) co_return;
    (void)co_await LookUp(spaces, chain);
    std::vector<uint32_t> owed;
    for (uint32_t i = 0; i < chain.ids.size(); ++i) {
      // They must still be owed when the read is done.
      const int64_t soon = UnixNow() + 1'000;
      if (!checker_.Owed(chain.key(i), soon)) continue;
      if (wanted == Wholeness::kUntainted && !checker_.OwedWhole(chain.key(i), soon)) continue;
      owed.push_back(i);
    }
    const kv::StoreStats before = world_.node().stats();
    co_await Read(spaces, chain, std::move(owed), 1, Patience::kFull);
    const kv::StoreStats after = world_.node().stats();
    if (whole && after.degraded_reads > before.degraded_reads) {
      co_await DescribeRun(spaces, chain, 0);
      Fail(wanted == Wholeness::kAll ? "a read is degraded after a scrub"
                                     : "a read was degraded, and nothing is broken");
    }
  }
}

kv::Task<void> StoreWorkload::DeleteAll() {
  const Spaces spaces = co_await Attach();
  for (const SimChain& chain : scenario_.chains) {
    if (spaces.ok) co_await Delete(spaces, chain, 0);
  }
}

kv::Task<void> StoreWorkload::PutAll() {
  const Spaces spaces = co_await Attach();
  if (!spaces.ok) {
    Fail("the healed node takes no namespace");
    co_return;
  }
  kv::Random random(scenario_.seed);
  for (const SimChain& chain : scenario_.chains) {
    const auto length = static_cast<uint32_t>(chain.ids.size());
    const uint32_t found = co_await LookUp(spaces, chain);
    if (found < length && !Over()) {
      co_await Put(spaces, chain, found, length - found, random.Next());
      // A block behind the first missing one may expire between its put and its lookup.
      std::vector<uint32_t> all;
      for (uint32_t i = found; i < length; ++i) all.push_back(i);
      co_await Read(spaces, chain, std::move(all), random.Next(), Patience::kFull);
    }
    if (Over()) co_return;
  }
}

}  // namespace cairn::sim
