// Lookup, write and reclaim, target by target; what to free is asked of the store's own planner.
#include "tools/cachesim/store_policy.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kvstore/base/check.h"
#include "kvstore/types/limits.h"

namespace cairn::tools {
namespace {

// The log keeps one segment for moves, and starts each with a header.
constexpr uint64_t kSegmentsForMoves = 1;
constexpr uint64_t kRecordHeaderBytes = 64;
constexpr uint64_t kManifestBytes = 96;  // Without targets and blocks.
constexpr uint64_t kManifestBlockBytes = 40;

kv::Status Invalid(std::string message) { return {kv::Code::kInvalid, std::move(message)}; }

}  // namespace

double StorePolicyCounts::HitRate() const {
  if (input_tokens == 0) return 0;
  return static_cast<double>(hit_tokens) / static_cast<double>(input_tokens);
}

double StorePolicyCounts::WriteAmplification() const {
  if (bytes_written == 0) return 1;
  return static_cast<double>(bytes_written + bytes_rewritten) / static_cast<double>(bytes_written);
}

kv::Result<StorePolicy> StorePolicy::Create(StorePolicyOptions options) {
  if (options.targets == 0) return Invalid("a store has at least one target");
  if (options.segment_bytes == 0 ||
      options.capacity_bytes < 6 * options.segment_bytes * options.targets) {
    return Invalid(
        "a target has at least 6 segments: raise the capacity, or make segments smaller");
  }
  if (options.bytes_per_token <= 0 || options.block_tokens == 0 || options.run_blocks == 0) {
    return Invalid("bytes per token, tokens per block and blocks per run must be above zero");
  }
  if (options.data_shards == 0) return Invalid("a stripe needs at least one data shard");
  if (options.targets > 1 && options.targets < options.data_shards + options.parity_shards) {
    return Invalid("a stripe needs a target for each of its shards");
  }
  if (options.move_percent_max > 100) return Invalid("at most 100 % may be rewritten");
  if (options.classes.empty()) return Invalid("name at least one retention class");
  return StorePolicy(std::move(options));
}

StorePolicy::StorePolicy(StorePolicyOptions options) : options_(std::move(options)), random_(1) {
  const uint64_t segments = options_.capacity_bytes / options_.targets / options_.segment_bytes;
  targets_.resize(options_.targets);
  for (Target& target : targets_) {
    target.segments.resize(segments);
    target.free_count = segments;
    target.open.assign(2 * options_.classes.size(), kNone);
  }
}

uint64_t StorePolicy::used_bytes() const {
  uint64_t used = 0;
  for (const Target& target : targets_) {
    used += (target.segments.size() - target.free_count) * options_.segment_bytes;
  }
  return used;
}

SpaceUse StorePolicy::Space() const {
  SpaceUse space;
  double used = 0;
  double records = 0;
  for (const Target& target : targets_) {
    for (const Segment& segment : target.segments) used += static_cast<double>(segment.used);
  }
  const double parity = 1.0 + static_cast<double>(options_.parity_shards) /
                                  static_cast<double>(options_.data_shards);
  for (const Stripe& stripe : stripes_) {
    if (!stripe.live) continue;
    records += static_cast<double>(stripe.record_bytes * stripe.places.size());
    space.live += static_cast<double>(stripe.blocks.size() * options_.block_tokens) *
                  options_.bytes_per_token * parity;
  }
  space.free = static_cast<double>(options_.capacity_bytes) - used;
  space.dead = used - records;
  space.overhead = records - space.live;
  return space;
}

void StorePolicy::Add(const Access& access, size_t retention) {
  KV_CHECK(retention < options_.classes.size());
  now_ms_ = std::max(now_ms_, access.time_ms);
  table_.Intern(access.blocks, indexes_);
  stripe_of_.resize(table_.size(), kNone);
  const uint64_t hit_blocks = CountHits();
  counts_.input_tokens += access.input_tokens;
  counts_.hit_tokens += TokensInBlocks(hit_blocks, options_.block_tokens, access.input_tokens);
  TouchAndWrite(static_cast<uint32_t>(retention));
}

// The leading run; what is found expired on the way goes.
uint64_t StorePolicy::CountHits() {
  uint64_t hit_blocks = 0;
  bool leading = true;
  for (const uint32_t index : indexes_) {
    const uint32_t stripe = stripe_of_[index];
    if (stripe != kNone && now_ms_ >= stripes_[stripe].expires_ms) {
      Drop(stripe);
      ++counts_.stripes_expired;
    }
    leading = leading && stripe_of_[index] != kNone;
    if (leading) ++hit_blocks;
  }
  return hit_blocks;
}

// A put refreshes what it finds stored; only then is the rest written.
void StorePolicy::TouchAndWrite(uint32_t retention) {
  for (const uint32_t index : indexes_) {
    if (stripe_of_[index] == kNone) continue;
    Stripe& used = stripes_[stripe_of_[index]];
    used.hit = true;
    used.last_access = static_cast<uint32_t>(now_ms_ / 1000);
    const RetentionClass& rules = options_.classes[used.retention];
    if (rules.refresh_on_hit) used.expires_ms = now_ms_ + rules.ttl_ms;
  }
  const std::vector<uint32_t> chain = indexes_;
  std::vector<bool> missing(chain.size());
  for (size_t i = 0; i < chain.size(); ++i) {
    missing[i] = stripe_of_[chain[i]] == kNone;
    if (missing[i]) stripe_of_[chain[i]] = kAsked;
  }
  for (size_t begin = 0; begin < chain.size(); begin += options_.run_blocks) {
    const size_t end = std::min<size_t>(chain.size(), begin + options_.run_blocks);
    std::vector<uint32_t> positions;
    for (size_t i = begin; i < end; ++i) {
      if (missing[i]) positions.push_back(static_cast<uint32_t>(i));
    }
    if (!positions.empty()) WriteRun(chain, positions, retention);
  }
}

void StorePolicy::WriteRun(const std::vector<uint32_t>& chain,
                           const std::vector<uint32_t>& positions, uint32_t retention) {
  const double block_bytes = static_cast<double>(options_.block_tokens) * options_.bytes_per_token;
  size_t most = positions.size();
  if (options_.payload_bytes_max > 0) {
    most = static_cast<size_t>(
        std::max(1.0, static_cast<double>(options_.payload_bytes_max) / block_bytes));
  }
  for (size_t begin = 0; begin < positions.size(); begin += most) {
    const size_t end = std::min(positions.size(), begin + most);
    std::vector<uint32_t> blocks;
    for (size_t i = begin; i < end; ++i) blocks.push_back(chain[positions[i]]);
    WriteStripe(std::move(blocks), positions[begin], retention);
  }
}

void StorePolicy::WriteStripe(std::vector<uint32_t> blocks, uint32_t position,
                              uint32_t retention) {
  auto at = static_cast<uint32_t>(stripes_.size());
  if (spare_stripes_.empty()) {
    stripes_.emplace_back();
  } else {
    at = spare_stripes_.back();
    spare_stripes_.pop_back();
  }
  const auto [width, record_bytes] = ShapeOf(blocks.size());
  counts_.payload_bytes_written +=
      static_cast<double>(blocks.size() * options_.block_tokens) * options_.bytes_per_token;
  for (const uint32_t block : blocks) stripe_of_[block] = at;
  stripes_[at] = {.blocks = std::move(blocks),
                  .places = {},
                  .record_bytes = record_bytes,
                  .expires_ms = now_ms_ + options_.classes[retention].ttl_ms,
                  .last_access = static_cast<uint32_t>(now_ms_ / 1000),
                  .position = position,
                  .retention = retention,
                  .hit = false,
                  .live = true,
                  .generation = stripes_[at].generation};
  writing_ = at;
  ++counts_.stripes_written;
  for (const kv::TargetId id : ChooseTargets(width)) {
    const auto number = static_cast<uint32_t>(id.value);
    Target& target = targets_[number];
    uint32_t segment = Append(target, at, Purpose::kPut);
    for (int attempt = 0; segment == kNone && attempt < 16; ++attempt) {
      MakeRoom();
      segment = Append(target, at, Purpose::kPut);
    }
    if (segment == kNone) continue;  // Written with a shard less.
    stripes_[at].places.push_back({number, segment});
    counts_.bytes_written += record_bytes;
  }
  writing_ = kNone;
  // Too few shards, and the put has failed.
  if (stripes_[at].places.size() + options_.parity_shards < width || stripes_[at].places.empty()) {
    Drop(at);
  }
  MakeRoom();
}

std::pair<uint32_t, uint64_t> StorePolicy::ShapeOf(uint64_t blocks) const {
  const double payload =
      static_cast<double>(blocks * options_.block_tokens) * options_.bytes_per_token;
  const double width =
      std::clamp(std::floor(payload / static_cast<double>(options_.shard_bytes_min)), 1.0,
                 static_cast<double>(options_.data_shards));
  const auto unit = static_cast<double>(std::max<uint64_t>(1, options_.record_bytes));
  const auto shard = static_cast<uint64_t>(std::ceil(payload / width / unit) * unit);
  // As kv::LayOut: rounding up may leave the last shards empty.
  const auto data_shards =
      static_cast<uint32_t>(std::ceil(payload / static_cast<double>(shard)));
  const uint64_t record = shard + HeaderBytes(blocks, data_shards, payload);
  const uint32_t shards = data_shards + options_.parity_shards;
  if (options_.targets == 1) return {1, record * shards};
  return {shards, record};
}

// As kvstore/types/manifest.cc lays it out; blocks that reach over shards have a checksum for each
// piece.
uint64_t StorePolicy::HeaderBytes(uint64_t blocks, uint64_t data_shards, double payload) const {
  if (options_.header_bytes == 0) return 0;
  const double shard = payload / static_cast<double>(data_shards);
  const bool small = payload / static_cast<double>(blocks) < shard;
  const uint64_t pieces = small ? 2 * (data_shards - 1) : blocks + data_shards;
  const uint64_t bytes = kRecordHeaderBytes + kManifestBytes + kManifestBlockBytes * blocks +
                         8 * (data_shards + options_.parity_shards + pieces);
  return (bytes + options_.header_bytes - 1) / options_.header_bytes * options_.header_bytes;
}

// Their ids are their numbers. None has a queue.
std::vector<kv::TargetId> StorePolicy::ChooseTargets(uint32_t count) {
  std::vector<kv::TargetState> states;
  for (uint32_t i = 0; i < targets_.size(); ++i) {
    states.push_back({.id = {i}, .live = true, .free_bytes = RoomForPuts(targets_[i])});
  }
  return chooser_.Choose(states, count, random_).value();
}

// In free segments and in the rest of those open for puts.
uint64_t StorePolicy::RoomForPuts(const Target& target) const {
  uint64_t room = target.free_count * options_.segment_bytes;
  for (size_t i = 0; i < options_.classes.size(); ++i) {
    const uint32_t open = target.open[i];
    if (open != kNone) room += options_.segment_bytes - target.segments[open].used;
  }
  return room;
}

// A record larger than a segment takes several segments at once.
uint64_t StorePolicy::SegmentsFor(uint64_t bytes) const {
  return std::max<uint64_t>(1, (bytes + options_.header_bytes + options_.segment_bytes - 1) /
                                   options_.segment_bytes);
}

uint32_t StorePolicy::Append(Target& target, uint32_t stripe, Purpose purpose) {
  const Stripe& record = stripes_[stripe];
  const bool apart =
      purpose == Purpose::kMove && target.segments.size() >= kv::kSegmentsForOwnMoves;
  uint32_t& open = target.open[record.retention + (apart ? options_.classes.size() : 0)];
  if (open != kNone) {
    if (TryAppend(target.segments[open], stripe)) return open;
    target.segments[open].sealed = true;
    open = kNone;
  }
  const uint64_t taken = SegmentsFor(record.record_bytes);
  const uint64_t reserve = purpose == Purpose::kPut ? kSegmentsForMoves : 0;
  if (target.free_count < taken + reserve) return AppendAnywhere(target, stripe);
  const auto found = std::find_if(target.segments.begin(), target.segments.end(),
                                  [](const Segment& segment) { return segment.free; });
  *found = {.shards = {{.stripe = stripe, .generation = record.generation}},
            .used = options_.header_bytes + record.record_bytes,
            .taken = taken,
            .sealed = taken > 1,
            .free = false};
  target.free_count -= taken;
  const auto number = static_cast<uint32_t>(found - target.segments.begin());
  if (taken == 1) open = number;
  return number;
}

bool StorePolicy::TryAppend(Segment& segment, uint32_t stripe) const {
  const Stripe& record = stripes_[stripe];
  if (segment.used + record.record_bytes > options_.segment_bytes) return false;
  segment.used += record.record_bytes;
  segment.shards.push_back({.stripe = stripe, .generation = record.generation});
  return true;
}

// With no segment left to open, order gives way to room.
uint32_t StorePolicy::AppendAnywhere(Target& target, uint32_t stripe) const {
  for (const uint32_t open : target.open) {
    if (open != kNone && TryAppend(target.segments[open], stripe)) return open;
  }
  return kNone;
}

void StorePolicy::MakeRoom() {
  const uint64_t budget = kv::MoveBudget(counts_.bytes_written, counts_.bytes_rewritten,
                                         options_.segment_bytes * targets_.size(),
                                         options_.move_percent_max) /
                          targets_.size();
  for (uint32_t i = 0; i < targets_.size(); ++i) {
    const Target& target = targets_[i];
    const uint64_t wanted = kv::SegmentsWanted(target.segments.size(), target.free_count,
                                               options_.free_percent_min);
    if (wanted > 0) Reclaim(i, wanted, budget);
  }
}

void StorePolicy::Reclaim(uint32_t number, uint64_t segments_wanted, uint64_t move_bytes_max) {
  Target& target = targets_[number];
  std::vector<kv::SegmentView> views;
  std::vector<uint32_t> sealed;
  for (uint32_t at = 0; at < target.segments.size(); ++at) {
    Segment& segment = target.segments[at];
    if (segment.free || !segment.sealed) continue;
    std::erase_if(segment.shards,
                  [&](const Shard& shard) { return !IsAt(shard, {number, at}); });
    kv::SegmentView view{.used_bytes = segment.used, .shards = {}};
    for (const Shard& shard : segment.shards) view.shards.push_back(ViewOf(shard.stripe));
    views.push_back(std::move(view));
    sealed.push_back(at);
  }
  const kv::ReclaimNeed need{
      .segments_wanted = segments_wanted,
      .move_bytes_max = move_bytes_max,
      .now_seconds = static_cast<uint32_t>(now_ms_ / 1000)};
  for (const kv::SegmentReclaim& reclaim : planner_.Plan(views, need)) {
    const uint32_t at = sealed[reclaim.segment];
    const std::vector<Shard> shards = target.segments[at].shards;
    std::vector<uint32_t> evict = reclaim.evict;
    for (const uint32_t i : reclaim.move) {
      if (!Move(shards[i].stripe, {number, at})) evict.push_back(i);
    }
    for (const uint32_t i : reclaim.expired) Drop(shards[i].stripe);
    for (const uint32_t i : evict) Drop(shards[i].stripe);
    counts_.stripes_expired += reclaim.expired.size();
    counts_.stripes_evicted += evict.size();
    target.free_count += target.segments[at].taken;
    target.segments[at] = Segment();
  }
}

kv::ShardView StorePolicy::ViewOf(uint32_t at) const {
  using Fate = kv::ShardView::Fate;
  const Stripe& stripe = stripes_[at];
  const bool expired = now_ms_ >= stripe.expires_ms;
  return {.fate = at == writing_ ? Fate::kPinned : expired ? Fate::kExpired : Fate::kLive,
          .hit = stripe.hit,
          .last_access = stripe.last_access,
          .position = stripe.position,
          .bytes = stripe.record_bytes};
}

bool StorePolicy::IsAt(const Shard& shard, Place place) const {
  const Stripe& stripe = stripes_[shard.stripe];
  if (!stripe.live || stripe.generation != shard.generation) return false;
  return std::any_of(stripe.places.begin(), stripe.places.end(), [&](const Place& other) {
    return other.target == place.target && other.segment == place.segment;
  });
}

// False when there is no room for it.
bool StorePolicy::Move(uint32_t stripe, Place from) {
  Target& target = targets_[from.target];
  const uint32_t segment = Append(target, stripe, Purpose::kMove);
  if (segment == kNone) return false;
  for (Place& place : stripes_[stripe].places) {
    if (place.target == from.target) place.segment = segment;
  }
  counts_.bytes_rewritten += stripes_[stripe].record_bytes;
  ++counts_.shards_moved;
  return true;
}

// Its shards elsewhere become garbage, which their own targets find.
void StorePolicy::Drop(uint32_t at) {
  Stripe& stripe = stripes_[at];
  if (!stripe.live) return;
  stripe.live = false;
  for (const uint32_t block : stripe.blocks) {
    if (stripe_of_[block] == at) stripe_of_[block] = kNone;
  }
  const uint32_t generation = stripe.generation + 1;
  stripe = Stripe();
  stripe.generation = generation;
  spare_stripes_.push_back(at);
}

}  // namespace cairn::tools
