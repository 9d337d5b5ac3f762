// Users, crashes and the oracle of the segment log.
#include "tests/sim/segment_world.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kvstore/base/checksum.h"

namespace cairn::sim {

using kv::Bytes;
using kv::Code;
using kv::kSectorSize;
using kv::Status;
using kv::Task;

namespace {

constexpr uint64_t kSegmentSize = 4 * kv::kMiB;

uint64_t DiskSize(uint32_t segment_count) { return 64 * kv::kKiB + segment_count * kSegmentSize; }

kv::Id128 RandomId(kv::Random& random) {
  const uint64_t high = random.Next();
  const uint64_t low = random.Next();
  return {high, low};
}

}  // namespace

kv::Manifest RandomManifest(kv::Random& random, uint32_t data_shards, uint32_t shard_sectors,
                            kv::UnixMillis expires_at) {
  kv::Manifest manifest;
  manifest.stripe = {RandomId(random)};
  manifest.space = {RandomId(random)};
  manifest.run = {RandomId(random)};
  manifest.code_id = 1;
  manifest.data_shards = static_cast<uint8_t>(data_shards);
  manifest.parity_shards = 1;
  manifest.shard_size = static_cast<uint32_t>(shard_sectors * kSectorSize);
  manifest.retention = {kv::RetentionKind::kRefreshed, 60, expires_at};
  for (uint32_t i = 0; i < manifest.shard_count(); ++i) manifest.targets.push_back({i + 1});
  kv::ManifestBlock block;
  block.id = {RandomId(random)};
  block.size = data_shards * manifest.shard_size - static_cast<uint32_t>(random.Below(100));
  manifest.blocks.push_back(block);
  if (data_shards > 1) manifest.piece_checksums.assign(data_shards, 7);
  return manifest;
}

Bytes PayloadOf(const kv::Manifest& manifest, kv::ShardIndex index) {
  Bytes payload(manifest.shard_size);
  kv::Random content(manifest.stripe.low ^ index.value);
  content.Fill(payload.span());
  return payload;
}

SegmentWorld::SegmentWorld(uint64_t seed, uint32_t segment_count)
    : random_(seed),
      disk_(loop_, clock_, {.size = DiskSize(segment_count), .seed = seed}),
      workers_(clock_, seed),
      metadata_(clock_, {.seed = seed}),
      product_random_(seed + 1) {
  disk_.SetOnCrash([this] {
    if (expected_) last_crash_ = *expected_;
    crashed_since_check_ = true;
    metadata_.Crash(last_crash_);
  });
}

SegmentWorld::~SegmentWorld() { Crash(CrashMode::kProcess); }

kv::SegmentLog::Parts SegmentWorld::parts() {
  return {loop_, clock_, workers_, *disk_view_, *metadata_view_, product_random_, null_log_};
}

Status SegmentWorld::Start() {
  if (disk_.down()) disk_.Restart();
  disk_view_ = disk_.Open();
  metadata_view_ = metadata_.Open();
  kv::SegmentLogOptions options;
  options.segment_size = kSegmentSize;
  auto opened = clock_.Await(kv::SegmentLog::Open(parts(), options));
  if (!opened.ok()) return opened.status();
  log_ = std::move(opened).value();
  return Status();
}

Status SegmentWorld::Stop() {
  const Status status = clock_.Await(log_->Stop());
  clock_.RunUntilIdle();
  log_.reset();
  return status;
}

void SegmentWorld::Crash(CrashMode mode) {
  if (!disk_.down()) {
    expected_.reset();
    last_crash_ = mode;
    disk_.Crash(mode);
  }
  clock_.RunUntilIdle();
  log_.reset();
}

void SegmentWorld::Work(uint32_t users, uint32_t operations) {
  std::vector<Task<void>> tasks;
  for (uint32_t i = 0; i < users; ++i) tasks.push_back(User(operations));
  const bool done = clock_.RunUntil([&tasks] {
    return std::all_of(tasks.begin(), tasks.end(), [](const auto& task) { return task.done(); });
  });
  KV_CHECK(done);  // Otherwise somebody waits for ever.
}

Status SegmentWorld::ReuseSegments() {
  clock_.Await(Sync());
  const auto highest_epoch = [this] {
    uint64_t highest = 0;
    for (const kv::SegmentInfo& info : log_->segments()) highest = std::max(highest, info.epoch);
    return highest >> 32;
  };
  const uint64_t before = highest_epoch();
  for (int i = 0; i < 2000; ++i) {
    clock_.Await(Append());
    if (highest_epoch() > before && random_.Chance(1, 4)) return Status();
  }
  return Status(Code::kNoSpace, "no segment was used again");
}

Task<void> SegmentWorld::User(uint32_t operations) {
  for (uint32_t i = 0; i < operations && !down(); ++i) {
    const uint64_t choice = random_.Below(100);
    if (choice < 55) {
      co_await Append();
    } else if (choice < 60) {
      co_await AppendAgain();
    } else if (choice < 68) {
      co_await Sync();
    } else if (choice < 80) {
      co_await Read();
    } else if (choice < 86) {
      co_await Move();
    } else if (choice < 93) {
      const Entry* entry = AnyEntry();
      if (entry != nullptr) co_await Drop(entry->manifest.stripe);
    } else {
      co_await Reclaim();
    }
  }
}

Task<void> SegmentWorld::Append() {
  const auto data_shards = static_cast<uint32_t>(1 + random_.Below(3));
  const auto sectors = static_cast<uint32_t>(1 + random_.Below(random_.Chance(1, 4) ? 200 : 12));
  const uint64_t ttl = random_.Below(1'000'000'000);
  Entry entry;
  entry.manifest = RandomManifest(random_, data_shards, sectors,
                                  {clock_.UnixNow().value + static_cast<int64_t>(ttl)});
  entry.index = {static_cast<uint8_t>(random_.Below(entry.manifest.shard_count()))};
  const kv::StripeId stripe = entry.manifest.stripe;
  model_.emplace(stripe, std::move(entry));
  order_.push_back(stripe);
  co_await AppendEntry(stripe);
}

// A repair puts a shard back where it was dropped or lost.
Task<void> SegmentWorld::AppendAgain() {
  const Entry* entry = AnyEntry();
  if (entry == nullptr) co_return;
  co_await AppendEntry(entry->manifest.stripe);
}

Task<void> SegmentWorld::AppendEntry(kv::StripeId stripe) {
  Entry& entry = model_.at(stripe);
  const Bytes payload = PayloadOf(entry.manifest, entry.index);
  const bool was_present = entry.state == State::kPresent;
  if (!was_present) Settle(entry, State::kUnknown);
  const uint64_t version = entry.version;
  ++entry.copies_in_flight;
  const kv::ShardPayload given{payload.span(), kv::Checksum(payload.span())};
  const Status status = co_await log_->Append(entry.manifest, entry.index, given);
  --entry.copies_in_flight;
  if (status.ok()) ++acknowledged_;
  if (status.code() == Code::kNoSpace) co_return co_await Reclaim();
  if (!status.ok()) co_return Complain("append", status);
  if (was_present) co_return;
  Settle(entry, entry.version == version ? State::kPresent : State::kUnknown);
}

Task<void> SegmentWorld::Sync() {
  std::vector<std::pair<kv::StripeId, uint64_t>> covered;
  for (const auto& [stripe, entry] : model_) covered.emplace_back(stripe, entry.version);
  const Status status = co_await log_->Sync();
  if (!status.ok()) co_return Complain("sync", status);
  for (const auto& [stripe, version] : covered) {
    Entry& entry = model_.at(stripe);
    if (entry.version == version) entry.synced = true;
  }
}

Task<void> SegmentWorld::Read() {
  const Entry* entry = AnyEntry();
  if (entry == nullptr) co_return;
  const kv::Manifest& manifest = entry->manifest;
  const uint64_t version = entry->version;
  const bool present = entry->state == State::kPresent;
  const uint64_t sectors = manifest.shard_size / kSectorSize;
  const uint64_t first = random_.Below(sectors);
  const uint64_t count = 1 + random_.Below(sectors - first);
  const Bytes payload = PayloadOf(manifest, entry->index);
  const kv::ByteSpan expected = payload.span().subspan(first * kSectorSize, count * kSectorSize);
  Bytes into(count * kSectorSize);
  kv::SegmentLog::Range range;
  range.stripe = manifest.stripe;
  range.index = entry->index;
  range.offset = static_cast<uint32_t>(first * kSectorSize);
  range.into = into.span();
  if (random_.Chance(1, 2)) {
    range.checked_size = static_cast<uint32_t>(into.size() - random_.Below(kSectorSize));
    range.checksum = kv::Checksum(expected.first(range.checked_size));
  }
  const Status status = co_await log_->Read(range);
  // Damage can be seen only where the request has a checksum.
  const size_t vouched = damaged_ ? range.checked_size : into.size();
  const bool wrong = status.ok() && std::memcmp(into.data(), expected.data(), vouched) != 0;
  if (wrong) complaint_ += "a read gave wrong bytes; ";
  if (!status.ok() && present && entry->version == version) Complain("read", status);
}

Task<void> SegmentWorld::Move() {
  Entry* entry = AnyEntry();
  if (entry == nullptr) co_return;
  const uint64_t version = entry->version;
  const bool present = entry->state == State::kPresent;
  ++entry->copies_in_flight;
  const Status status = co_await log_->Move(entry->manifest.stripe);
  --entry->copies_in_flight;
  const bool excused = status.ok() || status.code() == Code::kNoSpace;
  if (!excused && present && entry->version == version) Complain("move", status);
}

Task<void> SegmentWorld::Drop(kv::StripeId stripe) {
  Entry& entry = model_.at(stripe);
  Settle(entry, State::kUnknown);
  const uint64_t version = entry.version;
  const Status status = co_await log_->Drop(stripe);
  if (!status.ok()) co_return Complain("drop", status);
  // A copy that is being written may land after the drop.
  if (entry.version == version && entry.copies_in_flight == 0) Settle(entry, State::kDropped);
}

// Drops what is in the oldest sealed segment, and frees it.
Task<void> SegmentWorld::Reclaim() {
  std::optional<kv::SegmentInfo> oldest;
  for (const kv::SegmentInfo& info : log_->segments()) {
    if (info.state != kv::SegmentInfo::State::kSealed) continue;
    if (!oldest || info.epoch < oldest->epoch) oldest = info;
  }
  if (!oldest) co_return;
  for (const kv::StripeId stripe : log_->StripesIn(oldest->id)) co_await Drop(stripe);
  const Status status = co_await log_->Free(oldest->id);
  // Another user may have freed it, or appended again what was dropped.
  if (!status.ok() && status.code() != Code::kInvalid) Complain("free", status);
}

SegmentWorld::Entry* SegmentWorld::AnyEntry() {
  if (order_.empty()) return nullptr;
  return &model_.at(order_[random_.Below(order_.size())]);
}

void SegmentWorld::Settle(Entry& entry, State state) {
  entry.state = state;
  entry.synced = false;
  ++entry.version;
}

// Errors are for the asking while the test breaks the disk; wrong answers never are.
void SegmentWorld::Complain(const std::string& what, const Status& status) {
  if (status.code() == Code::kUnavailable || down()) return;
  if (damaged_ && status.code() == Code::kCorrupt) return;
  complaint_ += what + ": " + status.ToString() + "; ";
}

std::string SegmentWorld::Check() {
  std::string wrong = std::exchange(complaint_, {});
  const bool power_cut = crashed_since_check_ && last_crash_ == CrashMode::kPowerCut;
  for (auto& [stripe, entry] : model_) {
    const bool found = log_->Find(stripe).has_value();
    const bool held = entry.synced || !power_cut;
    if (!found && entry.state == State::kPresent && held) {
      wrong += "stripe " + stripe.ToHex() + " is lost; ";
    }
    if (found && entry.state == State::kDropped && (entry.synced || !crashed_since_check_)) {
      wrong += "stripe " + stripe.ToHex() + " was dropped and is back; ";
    }
    if (found) wrong += ReadBack(entry, true);
    if (!crashed_since_check_) continue;
    const State now = found ? State::kPresent : State::kUnknown;
    if (now != entry.state) Settle(entry, now);
  }
  crashed_since_check_ = false;
  return wrong;
}

std::string SegmentWorld::CheckAfterRescan() {
  for (auto& [stripe, entry] : model_) {
    if (entry.state == State::kDropped) Settle(entry, State::kUnknown);
  }
  return Check();
}

std::string SegmentWorld::CheckNothingWrong() {
  std::string wrong = std::exchange(complaint_, {});
  for (auto& [stripe, entry] : model_) {
    if (log_->Find(stripe).has_value()) wrong += ReadBack(entry, false);
  }
  return wrong;
}

std::string SegmentWorld::ReadBack(const Entry& entry, bool must_read) {
  const Bytes payload = PayloadOf(entry.manifest, entry.index);
  Bytes into(payload.size());
  const kv::StripeId stripe = entry.manifest.stripe;
  Status status = clock_.Await(log_->ReadVerified(stripe, entry.index, into.span()));
  if (status.ok() && std::memcmp(into.data(), payload.data(), into.size()) != 0) {
    return "stripe " + stripe.ToHex() + " reads wrong though verified; ";
  }
  if (!status.ok() && must_read) {
    return "stripe " + stripe.ToHex() + " is found, but: " + status.ToString() + "; ";
  }
  kv::SegmentLog::Range range;
  range.stripe = stripe;
  range.index = entry.index;
  range.into = into.span();
  if (!must_read) {
    range.checksum = kv::Checksum(payload.span());
    range.checked_size = static_cast<uint32_t>(payload.size());
  }
  status = clock_.Await(log_->Read(range));
  if (status.ok() && std::memcmp(into.data(), payload.data(), into.size()) != 0) {
    return "stripe " + stripe.ToHex() + " reads wrong; ";
  }
  return "";
}

}  // namespace cairn::sim
