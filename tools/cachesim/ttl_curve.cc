// Ages since the last use give the refreshed curve at once; fixed TTLs need one clock each.
#include "tools/cachesim/ttl_curve.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "kvstore/base/check.h"

namespace cairn::tools {
namespace {

constexpr uint32_t kPrefetchAhead = 16;
constexpr int64_t kNever = std::numeric_limits<int64_t>::min();

}  // namespace

TtlCurve::TtlCurve(uint64_t block_tokens, std::vector<int64_t> ttls_ms)
    : block_tokens_(block_tokens),
      ttls_ms_(std::move(ttls_ms)),
      refreshed_tokens_(ttls_ms_.size() + 1),
      fixed_tokens_(ttls_ms_.size()),
      gap_tokens_(ttls_ms_.size() + 1),
      gap_token_seconds_(ttls_ms_.size() + 1) {
  KV_CHECK(std::is_sorted(ttls_ms_.begin(), ttls_ms_.end()));
  for (const int64_t ttl_ms : ttls_ms_) {
    ages_max_.push_back(static_cast<uint32_t>(std::clamp<int64_t>(ttl_ms, 0, UINT32_MAX)));
  }
}

void TtlCurve::Add(const Access& access) {
  table_.Intern(access.blocks, numbered_);
  Add({access.time_ms, access.input_tokens, numbered_, table_.size()});
}

void TtlCurve::Add(const NumberedAccess& access) {
  if (requests_ == 0) start_ms_ = latest_ms_ = access.time_ms;
  latest_ms_ = std::max(latest_ms_, access.time_ms);
  if (last_use_ms_.size() < access.numbers) {
    last_use_ms_.resize(access.numbers, kNever);
    written_ms_.resize(size_t{access.numbers} * ttls_ms_.size());
  }
  AddRefreshed(access, latest_ms_);
  AddFixed(access, latest_ms_);
  ++requests_;
  input_tokens_ += access.input_tokens;
}

void TtlCurve::AddRefreshed(const NumberedAccess& access, int64_t now_ms) {
  size_t needed = 0;
  bool leading = true;
  // Neighbours were mostly used last at the same time: they are counted together.
  int64_t age_ms = -1;
  size_t bucket = 0;
  uint64_t tokens = 0;
  uint64_t leading_tokens = 0;
  const auto count = [&] {
    gap_tokens_[bucket] += tokens;
    gap_token_seconds_[bucket] += static_cast<double>(tokens) * static_cast<double>(age_ms) / 1e3;
    refreshed_tokens_[needed] += leading_tokens;
    tokens = leading_tokens = 0;
  };
  for (size_t i = 0; i < access.blocks.size(); ++i) {
    if (i + kPrefetchAhead < access.blocks.size()) {
      __builtin_prefetch(&last_use_ms_[access.blocks[i + kPrefetchAhead]], 1);
    }
    const int64_t last_use_ms = std::exchange(last_use_ms_[access.blocks[i]], now_ms);
    if (last_use_ms == kNever) {
      leading = false;
      continue;
    }
    if (now_ms - last_use_ms != age_ms) {
      count();
      age_ms = now_ms - last_use_ms;
      bucket = static_cast<size_t>(
          std::lower_bound(ttls_ms_.begin(), ttls_ms_.end(), age_ms) - ttls_ms_.begin());
      needed = std::max(needed, bucket);
    }
    const uint64_t of_block = TokensAt(i, block_tokens_, access.input_tokens);
    tokens += of_block;
    if (leading) leading_tokens += of_block;
  }
  count();
  touched_tokens_ += TokensInBlocks(access.blocks.size(), block_tokens_, access.input_tokens);
}

// Without branches, so that a compiler takes several TTLs at a time.
void TtlCurve::AddFixed(const NumberedAccess& access, int64_t now_ms) {
  const size_t ttls = ttls_ms_.size();
  hit_blocks_.assign(ttls, 0);
  const auto now = static_cast<uint32_t>(std::min<int64_t>(now_ms - start_ms_ + 1, UINT32_MAX));
  const uint32_t* __restrict ages_max = ages_max_.data();
  uint32_t* __restrict hits = hit_blocks_.data();
  for (uint32_t i = 0; i < access.blocks.size(); ++i) {
    if (i + kPrefetchAhead < access.blocks.size()) {
      __builtin_prefetch(&written_ms_[access.blocks[i + kPrefetchAhead] * ttls], 1);
    }
    uint32_t* __restrict written = &written_ms_[access.blocks[i] * ttls];
    for (size_t ttl = 0; ttl < ttls; ++ttl) {
      const uint32_t was = written[ttl];
      const uint32_t resident = (was != 0) & (now - was <= ages_max[ttl]);
      hits[ttl] += resident & (hits[ttl] == i);  // The leading run goes on.
      written[ttl] = resident != 0 ? was : now;
    }
  }
  for (size_t ttl = 0; ttl < ttls; ++ttl) {
    fixed_tokens_[ttl] += TokensInBlocks(hit_blocks_[ttl], block_tokens_, access.input_tokens);
  }
}

double TtlCurve::HitRateRefreshed(size_t ttl_index) const {
  if (input_tokens_ == 0) return 0;
  uint64_t tokens = 0;
  for (size_t i = 0; i <= ttl_index; ++i) tokens += refreshed_tokens_[i];
  return static_cast<double>(tokens) / static_cast<double>(input_tokens_);
}

double TtlCurve::HitRateFixed(size_t ttl_index) const {
  if (input_tokens_ == 0) return 0;
  return static_cast<double>(fixed_tokens_[ttl_index]) / static_cast<double>(input_tokens_);
}

double TtlCurve::ResidentTokensPerRate(size_t ttl_index) const {
  if (requests_ == 0) return 0;
  double token_seconds = 0;
  uint64_t kept_tokens = 0;  // Uses after which the next one came in time.
  for (size_t i = 0; i <= ttl_index; ++i) {
    token_seconds += gap_token_seconds_[i];
    kept_tokens += gap_tokens_[i];
  }
  const double ttl_seconds = static_cast<double>(ttls_ms_[ttl_index]) / 1e3;
  token_seconds += static_cast<double>(touched_tokens_ - kept_tokens) * ttl_seconds;
  return token_seconds / static_cast<double>(requests_);
}

}  // namespace cairn::tools
