// Every question is answered by looking at everything.
#include "tests/unit/planner/naive_store.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

namespace cairn::tools {

NaiveStore::NaiveStore(const StorePolicyOptions& options)
    : options_(options), targets_(options.targets) {
  for (Target& target : targets_) {
    target.segments.resize(options_.capacity_bytes / options_.targets / options_.segment_bytes);
  }
}

void NaiveStore::Add(const NaiveRequest& request, size_t retention) {
  now_ms_ = std::max(now_ms_, request.time_ms);
  for (const uint64_t block : request.blocks) {
    const std::optional<uint64_t> holder = HolderOf(block);
    if (!holder || !IsExpired(stripes_.at(*holder))) continue;
    stripes_.erase(*holder);
    ++counts_.stripes_expired;
  }
  size_t hits = 0;
  while (hits < request.blocks.size() && HolderOf(request.blocks[hits])) ++hits;
  counts_.input_tokens += request.input_tokens;
  counts_.hit_tokens += std::min(request.input_tokens, hits * options_.block_tokens);
  std::vector<size_t> missing;  // Where in the chain; what is asked for twice is missing once.
  std::set<uint64_t> asked;
  for (size_t i = 0; i < request.blocks.size(); ++i) {
    const std::optional<uint64_t> holder = HolderOf(request.blocks[i]);
    if (!holder) {
      if (asked.insert(request.blocks[i]).second) missing.push_back(i);
      continue;
    }
    Stripe& stripe = stripes_.at(*holder);
    stripe.hit = true;
    stripe.used_second = now_ms_ / 1000;
    const RetentionClass& rules = options_.classes[stripe.retention];
    if (rules.refresh_on_hit) stripe.expires_ms = now_ms_ + rules.ttl_ms;
  }
  const double block_bytes = static_cast<double>(options_.block_tokens) * options_.bytes_per_token;
  const double blocks_max = static_cast<double>(options_.payload_bytes_max) / block_bytes;
  while (!missing.empty()) {
    const size_t first = missing.front();
    const size_t run = first / options_.run_blocks;
    std::vector<uint64_t> blocks;
    while (!missing.empty() && missing.front() / options_.run_blocks == run &&
           (blocks.empty() || options_.payload_bytes_max == 0 ||
            static_cast<double>(blocks.size() + 1) <= blocks_max)) {
      blocks.push_back(request.blocks[missing.front()]);
      missing.erase(missing.begin());
    }
    Write(std::move(blocks), first, retention);
  }
}

uint64_t NaiveStore::used_bytes() const {
  uint64_t segments = 0;
  for (const Target& target : targets_) segments += target.segments.size() - FreeOf(target);
  return segments * options_.segment_bytes;
}

std::optional<uint64_t> NaiveStore::HolderOf(uint64_t block) const {
  for (const auto& [id, stripe] : stripes_) {
    if (std::count(stripe.blocks.begin(), stripe.blocks.end(), block) > 0) return id;
  }
  return std::nullopt;
}

// As wide as its shards stay above the least size; one pool takes the shards as one record.
void NaiveStore::Write(std::vector<uint64_t> blocks, size_t position, size_t retention) {
  const double payload =
      static_cast<double>(blocks.size() * options_.block_tokens) * options_.bytes_per_token;
  uint64_t width = 1;
  while (width < options_.data_shards &&
         payload >= static_cast<double>((width + 1) * options_.shard_bytes_min)) {
    ++width;
  }
  uint64_t shard = 0;
  while (static_cast<double>(shard * width) < payload) shard += options_.record_bytes;
  while (static_cast<double>(shard * (width - 1)) >= payload) --width;  // None is empty.
  const uint64_t shards = width + options_.parity_shards;
  const size_t records = options_.targets == 1 ? 1 : shards;
  writing_ = next_id_++;
  ++counts_.stripes_written;
  stripes_[writing_] = {.blocks = std::move(blocks),
                        .segment_on = {},
                        .bytes = options_.targets == 1 ? shard * shards : shard,
                        .expires_ms = now_ms_ + options_.classes[retention].ttl_ms,
                        .used_second = now_ms_ / 1000,
                        .position = position,
                        .retention = retention};
  for (const kv::TargetId id : Choose(records)) {
    std::optional<size_t> segment = Append(targets_[id.value], writing_, Purpose::kPut);
    for (int attempt = 0; !segment && attempt < 16; ++attempt) {
      MakeRoom();
      segment = Append(targets_[id.value], writing_, Purpose::kPut);
    }
    if (!segment) continue;
    stripes_.at(writing_).segment_on[id.value] = *segment;
    counts_.bytes_written += stripes_.at(writing_).bytes;
  }
  const size_t placed = stripes_.at(writing_).segment_on.size();
  if (placed == 0 || placed + options_.parity_shards < records) stripes_.erase(writing_);
  writing_ = 0;
  MakeRoom();
}

std::vector<kv::TargetId> NaiveStore::Choose(size_t shards) {
  std::vector<kv::TargetState> states;
  for (size_t i = 0; i < targets_.size(); ++i) {
    uint64_t room = FreeOf(targets_[i]) * options_.segment_bytes;
    for (const auto& [purpose, segment] : targets_[i].open) {
      if (purpose.first == Purpose::kMove) continue;
      room += options_.segment_bytes - targets_[i].segments[segment].used;
    }
    states.push_back({.id = {i}, .live = true, .free_bytes = room});
  }
  return chooser_.Choose(states, shards, random_).value();
}

uint64_t NaiveStore::FreeOf(const Target& target) const {
  uint64_t taken = 0;
  for (const Segment& segment : target.segments) taken += segment.taken;
  return target.segments.size() - taken;
}

// Into the open segment of its kind; with no segment left to open, into any that has room. A put
// leaves one for moves. From 64 segments on, moves have their own.
std::optional<size_t> NaiveStore::Append(Target& target, uint64_t id, Purpose purpose) {
  const Stripe& stripe = stripes_.at(id);
  const auto fits = [&](size_t segment) {
    return target.segments[segment].used + stripe.bytes <= options_.segment_bytes;
  };
  const auto put_into = [&](size_t segment) {
    target.segments[segment].used += stripe.bytes;
    target.segments[segment].stripes.push_back(id);
    return segment;
  };
  const bool apart = purpose == Purpose::kMove && target.segments.size() >= 64;
  const std::pair kind{apart ? Purpose::kMove : Purpose::kPut, stripe.retention};
  if (target.open.contains(kind)) {
    const size_t open = target.open[kind];
    if (fits(open)) return put_into(open);
    target.segments[open].state = Segment::State::kSealed;
    target.open.erase(kind);
  }
  uint64_t taken = 1;
  while (taken * options_.segment_bytes < stripe.bytes) ++taken;
  if (FreeOf(target) < taken + (purpose == Purpose::kPut ? 1 : 0)) {
    for (const auto& [other, segment] : target.open) {
      if (fits(segment)) return put_into(segment);
    }
    return std::nullopt;
  }
  size_t chosen = 0;
  while (target.segments[chosen].state != Segment::State::kFree) ++chosen;
  target.segments[chosen].taken = taken;
  target.segments[chosen].state = taken == 1 ? Segment::State::kOpen : Segment::State::kSealed;
  if (taken == 1) target.open[kind] = chosen;
  return put_into(chosen);
}

// At least three segments and 1 % of them are to be free.
void NaiveStore::MakeRoom() {
  const uint64_t granted = std::max(counts_.bytes_written / 100 * options_.move_percent_max,
                                    options_.segment_bytes * targets_.size());
  const uint64_t left =
      granted > counts_.bytes_rewritten ? granted - counts_.bytes_rewritten : 0;
  for (size_t target = 0; target < targets_.size(); ++target) {
    const uint64_t segments = targets_[target].segments.size();
    const uint64_t low = std::max<uint64_t>(3, segments * options_.free_percent_min / 100);
    const uint64_t free = FreeOf(targets_[target]);
    if (free >= low) continue;
    uint64_t budget = left / targets_.size();
    for (const Sealed& sealed : Victims(SealedOf(target), low - free + segments / 1024)) {
      budget -= Free(target, sealed, budget);
    }
  }
}

std::vector<NaiveStore::Sealed> NaiveStore::SealedOf(size_t target) const {
  std::vector<Sealed> all;
  const std::vector<Segment>& segments = targets_[target].segments;
  for (size_t number = 0; number < segments.size(); ++number) {
    if (segments[number].state != Segment::State::kSealed) continue;
    Sealed sealed{number, segments[number].used, {}};
    for (const uint64_t id : segments[number].stripes) {
      const auto stripe = stripes_.find(id);
      if (stripe == stripes_.end()) continue;
      const auto place = stripe->second.segment_on.find(target);
      const bool here = place != stripe->second.segment_on.end() && place->second == number;
      if (here) sealed.stripes.push_back(id);
    }
    all.push_back(std::move(sealed));
  }
  return all;
}

std::vector<NaiveStore::Sealed> NaiveStore::Victims(const std::vector<Sealed>& all,
                                                    uint64_t wanted) {
  std::vector<Sealed> victims, rest;
  for (const Sealed& sealed : all) {
    const auto& ids = sealed.stripes;
    if (std::count(ids.begin(), ids.end(), writing_) > 0) continue;
    const bool live = std::any_of(ids.begin(), ids.end(), [&](uint64_t id) { return IsLive(id); });
    (live ? rest : victims).push_back(sealed);
    if (!live) NoteFreed(sealed, all.size());
  }
  if (victims.size() >= wanted || rest.empty()) return victims;
  if (freed_since_cutoff_ >= cutoff_lasts_) FindCutoff(all);
  // A live byte that is cold costs half of one that is hot.
  const auto cost = [&](const Sealed& sealed) {
    uint64_t twice = HotBytes(sealed);
    for (const uint64_t id : sealed.stripes) twice += IsLive(id) ? stripes_.at(id).bytes : 0;
    return twice;
  };
  std::stable_sort(rest.begin(), rest.end(),
                   [&](const Sealed& a, const Sealed& b) { return cost(a) < cost(b); });
  while (victims.size() < wanted && !rest.empty()) {
    NoteFreed(rest.front(), all.size());
    victims.push_back(rest.front());
    rest.erase(rest.begin());
  }
  return victims;
}

// Hot is what is youngest of all, up to a share of all bytes.
void NaiveStore::FindCutoff(const std::vector<Sealed>& all) {
  double live = 0, unused = 0, room = 0;
  uint64_t used = 0;
  for (const Sealed& sealed : all) {
    used += sealed.used;
    room += hot_share_ * static_cast<double>(sealed.used);
    for (const uint64_t id : sealed.stripes) {
      if (!IsLive(id)) continue;
      const auto bytes = static_cast<double>(stripes_.at(id).bytes);
      live += bytes;
      if (!stripes_.at(id).hit) unused += bytes;
    }
  }
  unused_aging_ = 1 + 1.5 * (live > 0 ? unused / live : 0);
  std::vector<std::pair<std::pair<uint64_t, size_t>, uint64_t>> youngest;
  for (const Sealed& sealed : all) {
    for (const uint64_t id : sealed.stripes) {
      const Stripe& stripe = stripes_.at(id);
      if (IsLive(id)) youngest.emplace_back(ColdnessOf(stripe), stripe.bytes);
    }
  }
  std::sort(youngest.begin(), youngest.end());
  cutoff_.reset();
  for (const auto& [coldness, bytes] : youngest) {
    room -= static_cast<double>(bytes);
    if (room < 0) break;
    cutoff_ = coldness;
  }
  freed_since_cutoff_ = 0;
  cutoff_lasts_ = used / 64;
}

std::pair<uint64_t, size_t> NaiveStore::ColdnessOf(const Stripe& stripe) const {
  const auto seconds = static_cast<double>(now_ms_ / 1000 - stripe.used_second);
  const double aging = stripe.hit ? 1 : unused_aging_;
  return {static_cast<uint64_t>(16 * aging * seconds), stripe.position};
}

bool NaiveStore::IsHot(uint64_t id) const {
  return IsLive(id) && cutoff_ && ColdnessOf(stripes_.at(id)) <= *cutoff_;
}

uint64_t NaiveStore::HotBytes(const Sealed& sealed) const {
  uint64_t bytes = 0;
  for (const uint64_t id : sealed.stripes) bytes += IsHot(id) ? stripes_.at(id).bytes : 0;
  return bytes;
}

// The share that is hot follows what freed segments turn out to hold: 22 % is aimed at.
void NaiveStore::NoteFreed(const Sealed& sealed, size_t sealed_count) {
  freed_since_cutoff_ += sealed.used;
  const double hot = static_cast<double>(HotBytes(sealed)) / static_cast<double>(sealed.used);
  hot_share_ += std::max(0.01, 0.25 / static_cast<double>(sealed_count)) * (0.22 - hot);
  hot_share_ = std::min(std::max(hot_share_, 0.3), 0.94);
}

// The hottest are moved first, within the budget and three quarters of the segment; what finds no
// room goes.
uint64_t NaiveStore::Free(size_t target, const Sealed& sealed, uint64_t budget) {
  const uint64_t room =
      std::min(budget, static_cast<uint64_t>(0.75 * static_cast<double>(sealed.used)));
  std::vector<uint64_t> hottest = sealed.stripes;
  std::erase_if(hottest, [&](uint64_t id) { return !IsLive(id); });
  std::stable_sort(hottest.begin(), hottest.end(), [&](uint64_t a, uint64_t b) {
    return ColdnessOf(stripes_.at(a)) < ColdnessOf(stripes_.at(b));
  });
  uint64_t moved = 0;
  std::set<uint64_t> stays;
  for (const uint64_t id : hottest) {
    const uint64_t bytes = stripes_.at(id).bytes;
    if (!IsHot(id) || moved + bytes > room) continue;
    moved += bytes;
    const std::optional<size_t> segment = Append(targets_[target], id, Purpose::kMove);
    if (!segment) continue;
    stays.insert(id);
    stripes_.at(id).segment_on[target] = *segment;
    counts_.bytes_rewritten += bytes;
    ++counts_.shards_moved;
  }
  for (const uint64_t id : sealed.stripes) {
    if (stays.contains(id)) continue;
    ++(IsLive(id) ? counts_.stripes_evicted : counts_.stripes_expired);
    stripes_.erase(id);
  }
  targets_[target].segments[sealed.segment] = Segment();
  return moved;
}

}  // namespace cairn::tools
