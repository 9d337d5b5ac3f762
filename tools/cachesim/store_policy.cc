// Lookup, write and reclaim over one pool of segments; recency is a counter, as ages in the store.
#include "tools/cachesim/store_policy.h"

#include <algorithm>
#include <cmath>

#include "kvstore/base/check.h"

namespace cairn::tools {
namespace {

// The recency that reclaim keeps is found anew this often: it moves slowly.
constexpr uint32_t kReclaimsPerEstimate = 16;

kv::Status Invalid(std::string message) { return {kv::Code::kInvalid, std::move(message)}; }

}  // namespace

double StorePolicyCounts::HitRate() const {
  if (input_tokens == 0) return 0;
  return static_cast<double>(hit_tokens) / static_cast<double>(input_tokens);
}

double StorePolicyCounts::WriteAmplification() const {
  return bytes_written == 0 ? 1 : (bytes_written + bytes_rewritten) / bytes_written;
}

kv::Result<StorePolicy> StorePolicy::Create(StorePolicyOptions options) {
  if (options.segment_bytes == 0 || options.capacity_bytes < 4 * options.segment_bytes) {
    return Invalid("the capacity must be at least 4 segments: raise it, or make segments smaller");
  }
  if (options.bytes_per_token <= 0 || options.block_tokens == 0 || options.run_blocks == 0) {
    return Invalid("bytes per token, tokens per block and blocks per run must be above zero");
  }
  if (options.data_shards == 0) return Invalid("a stripe needs at least one data shard");
  if (options.watermark <= 0 || options.watermark > 1) return Invalid("the watermark is in (0, 1]");
  if (options.keep_share <= 0 || options.keep_share > 1)
    return Invalid("the keep share is in (0, 1]");
  if (options.rewrite_share_max < 0 || options.rewrite_share_max >= 1) {
    return Invalid("the rewrite share is in [0, 1): at 1 reclaim would free nothing");
  }
  if (options.classes.empty()) return Invalid("name at least one retention class");
  return StorePolicy(std::move(options));
}

StorePolicy::StorePolicy(StorePolicyOptions options)
    : options_(std::move(options)), open_(options_.classes.size(), kNone) {}

void StorePolicy::Add(const Access& access, size_t retention) {
  KV_CHECK(retention < options_.classes.size());
  table_.Intern(access.blocks, indexes_);
  stripe_of_.resize(table_.size(), kNone);
  const uint64_t hit_blocks = CountHits(access.time_ms);
  counts_.input_tokens += access.input_tokens;
  counts_.hit_tokens += TokensInBlocks(hit_blocks, options_.block_tokens, access.input_tokens);
  TouchAndWrite(access.time_ms, static_cast<uint32_t>(retention), hit_blocks);
}

// The leading run; what is found expired on the way goes.
uint64_t StorePolicy::CountHits(int64_t now_ms) {
  uint64_t hit_blocks = 0;
  bool leading = true;
  for (const uint32_t index : indexes_) {
    const uint32_t stripe = stripe_of_[index];
    if (stripe != kNone && stripes_[stripe].expires_ms < now_ms) {
      Drop(stripe);
      ++counts_.stripes_expired;
    }
    leading = leading && stripe_of_[index] != kNone;
    if (leading) ++hit_blocks;
  }
  return hit_blocks;
}

// Runs from the tail to the root, so that suffixes are older than their prefixes.
void StorePolicy::TouchAndWrite(int64_t now_ms, uint32_t retention, uint64_t hit_blocks) {
  const size_t run = options_.run_blocks;
  for (size_t end = indexes_.size(); end > 0;) {
    const size_t begin = (end - 1) / run * run;
    std::vector<uint32_t> missing;
    for (size_t i = begin; i < end; ++i) {
      const uint32_t stripe = stripe_of_[indexes_[i]];
      if (stripe == kNone) {
        missing.push_back(indexes_[i]);
        continue;
      }
      if (i >= hit_blocks && !options_.touch_beyond_prefix) continue;
      Stripe& used = stripes_[stripe];
      used.recency = ++recency_;
      const RetentionClass& rules = options_.classes[used.retention];
      if (rules.refresh_on_hit) used.expires_ms = now_ms + rules.ttl_ms;
    }
    if (!missing.empty()) WriteStripe(std::move(missing), now_ms, retention);
    end = begin;
  }
}

void StorePolicy::WriteStripe(std::vector<uint32_t> blocks, int64_t now_ms, uint32_t retention) {
  const double payload_bytes =
      static_cast<double>(blocks.size() * options_.block_tokens) * options_.bytes_per_token;
  uint32_t at = static_cast<uint32_t>(stripes_.size());
  if (spare_stripes_.empty()) {
    stripes_.emplace_back();
  } else {
    at = spare_stripes_.back();
    spare_stripes_.pop_back();
  }
  for (const uint32_t block : blocks) stripe_of_[block] = at;
  stripes_[at] = {.blocks = std::move(blocks),
                  .bytes = PhysicalBytes(payload_bytes),
                  .recency = ++recency_,
                  .expires_ms = now_ms + options_.classes[retention].ttl_ms,
                  .retention = retention};
  ++counts_.stripes_written;
  counts_.bytes_written += stripes_[at].bytes;
  counts_.payload_bytes_written += payload_bytes;
  Append(at);
  const double limit = options_.watermark * static_cast<double>(options_.capacity_bytes);
  // At most half of a reclaimed segment is written again, so passes free space in the end.
  while (used_bytes_ > limit && Reclaim(now_ms)) {
  }
}

double StorePolicy::PhysicalBytes(double payload_bytes) const {
  const double width =
      std::clamp(std::floor(payload_bytes / static_cast<double>(options_.shard_bytes_min)), 1.0,
                 static_cast<double>(options_.data_shards));
  const auto unit = static_cast<double>(options_.record_bytes);
  const double shard_bytes =
      unit == 0 ? payload_bytes / width : std::ceil(payload_bytes / width / unit) * unit;
  const double record_bytes = shard_bytes + static_cast<double>(options_.record_overhead_bytes);
  return record_bytes * (width + options_.parity_shards);
}

void StorePolicy::Append(uint32_t stripe) {
  Stripe& record = stripes_[stripe];
  record.segment = OpenSegment(record.retention, record.bytes);
  Segment& segment = segments_[record.segment];
  segment.stripes.push_back(stripe);
  used_bytes_ -= Footprint(segment);
  segment.bytes += record.bytes;
  used_bytes_ += Footprint(segment);
  if (segment.bytes >= static_cast<double>(options_.segment_bytes)) {
    segment.sealed = true;
    open_[record.retention] = kNone;
  }
}

// A stripe larger than a segment has one of its own size.
double StorePolicy::Footprint(const Segment& segment) const {
  if (segment.free) return 0;
  return std::max(segment.bytes, static_cast<double>(options_.segment_bytes));
}

// Segments are per class, so that neighbours expire together.
uint32_t StorePolicy::OpenSegment(uint32_t retention, double bytes) {
  uint32_t& open = open_[retention];
  if (open != kNone) {
    Segment& segment = segments_[open];
    if (segment.bytes == 0 ||
        segment.bytes + bytes <= static_cast<double>(options_.segment_bytes)) {
      return open;
    }
    segment.sealed = true;
  }
  const auto found = std::find_if(segments_.begin(), segments_.end(),
                                  [](const Segment& segment) { return segment.free; });
  open = static_cast<uint32_t>(found - segments_.begin());
  if (found == segments_.end()) segments_.emplace_back();
  segments_[open] = {.stripes = {}, .bytes = 0, .sealed = false, .free = false};
  used_bytes_ += Footprint(segments_[open]);
  return open;
}

// False when every segment is still open: there is nothing to free.
bool StorePolicy::Reclaim(int64_t now_ms) {
  if (reclaims_++ % kReclaimsPerEstimate == 0) keep_recency_ = RecencyToKeep();
  const uint32_t victim = PickVictim(now_ms, keep_recency_);
  if (victim == kNone) return false;
  std::vector<uint32_t> stripes = std::move(segments_[victim].stripes);
  used_bytes_ -= Footprint(segments_[victim]);
  segments_[victim] = Segment();
  std::sort(stripes.begin(), stripes.end(),
            [this](uint32_t a, uint32_t b) { return stripes_[a].recency > stripes_[b].recency; });
  double budget = options_.rewrite_share_max * static_cast<double>(options_.segment_bytes);
  for (const uint32_t at : stripes) {
    Stripe& stripe = stripes_[at];
    if (stripe.live && stripe.expires_ms < now_ms) {
      Drop(at);
      ++counts_.stripes_expired;
    }
    if (stripe.live && stripe.recency >= keep_recency_ && stripe.bytes <= budget) {
      budget -= stripe.bytes;
      counts_.bytes_rewritten += stripe.bytes;
      ++counts_.stripes_rewritten;
      Append(at);
      continue;
    }
    if (stripe.live) {
      Drop(at);
      ++counts_.stripes_evicted;
    }
    spare_stripes_.push_back(at);
  }
  return true;
}

// The recency above which the live stripes fill the share to keep. Below 1, since a segment that is
// nearly all worth keeping frees nothing.
uint64_t StorePolicy::RecencyToKeep() const {
  std::vector<std::pair<uint64_t, double>> uses;
  for (const Stripe& stripe : stripes_) {
    if (stripe.live) uses.emplace_back(stripe.recency, stripe.bytes);
  }
  std::sort(uses.begin(), uses.end(), std::greater<>());
  double room =
      options_.keep_share * options_.watermark * static_cast<double>(options_.capacity_bytes) -
      static_cast<double>(options_.segment_bytes) * (1.0 + static_cast<double>(open_.size()));
  for (const auto& [recency, bytes] : uses) {
    room -= bytes;
    if (room < 0) return recency + 1;
  }
  return 0;
}

// The sealed segment with the fewest bytes that are alive and in recent use.
uint32_t StorePolicy::PickVictim(int64_t now_ms, uint64_t recent) const {
  uint32_t victim = kNone;
  double victim_bytes = 0;
  for (uint32_t at = 0; at < segments_.size(); ++at) {
    if (segments_[at].free || !segments_[at].sealed) continue;
    double bytes = 0;
    for (const uint32_t stripe : segments_[at].stripes) {
      const Stripe& record = stripes_[stripe];
      if (record.live && record.expires_ms >= now_ms && record.recency >= recent)
        bytes += record.bytes;
    }
    if (victim != kNone && bytes >= victim_bytes) continue;
    victim = at;
    victim_bytes = bytes;
  }
  return victim;
}

// The stripe's entry stays until its segment is reclaimed.
void StorePolicy::Drop(uint32_t stripe) {
  Stripe& record = stripes_[stripe];
  record.live = false;
  for (const uint32_t block : record.blocks) {
    if (stripe_of_[block] == stripe) stripe_of_[block] = kNone;
  }
  record.blocks.clear();
}

}  // namespace cairn::tools
