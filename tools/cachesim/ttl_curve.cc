// Ages since the last use give the refreshed curve at once; fixed TTLs need one clock each.
#include "tools/cachesim/ttl_curve.h"

#include <algorithm>
#include <limits>

#include "kvstore/base/check.h"

namespace cairn::tools {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::min();

}  // namespace

TtlCurve::TtlCurve(uint64_t block_tokens, std::vector<int64_t> ttls_ms)
    : block_tokens_(block_tokens),
      ttls_ms_(std::move(ttls_ms)),
      written_ms_(ttls_ms_.size()),
      refreshed_tokens_(ttls_ms_.size() + 1),
      fixed_tokens_(ttls_ms_.size()),
      gap_tokens_(ttls_ms_.size() + 1),
      gap_token_seconds_(ttls_ms_.size() + 1) {
  KV_CHECK(std::is_sorted(ttls_ms_.begin(), ttls_ms_.end()));
}

void TtlCurve::Add(const Access& access) {
  if (requests_ == 0) start_ms_ = latest_ms_ = access.time_ms;
  latest_ms_ = std::max(latest_ms_, access.time_ms);
  table_.Intern(access.blocks, indexes_);
  last_use_ms_.resize(table_.size(), kNever);
  AddRefreshed(access, latest_ms_);
  for (size_t ttl = 0; ttl < ttls_ms_.size(); ++ttl) AddFixed(ttl, access, latest_ms_);
  ++requests_;
  input_tokens_ += access.input_tokens;
}

void TtlCurve::AddRefreshed(const Access& access, int64_t now_ms) {
  size_t needed = 0;
  bool leading = true;
  for (size_t i = 0; i < indexes_.size(); ++i) {
    const uint64_t tokens = TokensAt(i, block_tokens_, access.input_tokens);
    touched_tokens_ += tokens;
    int64_t& last_use_ms = last_use_ms_[indexes_[i]];
    if (last_use_ms == kNever) {
      leading = false;
    } else {
      const int64_t age_ms = now_ms - last_use_ms;
      const auto bucket = static_cast<size_t>(
          std::lower_bound(ttls_ms_.begin(), ttls_ms_.end(), age_ms) - ttls_ms_.begin());
      gap_tokens_[bucket] += tokens;
      gap_token_seconds_[bucket] += static_cast<double>(tokens) * static_cast<double>(age_ms) / 1e3;
      needed = std::max(needed, bucket);
      if (leading) refreshed_tokens_[needed] += tokens;
    }
    last_use_ms = now_ms;
  }
}

void TtlCurve::AddFixed(size_t ttl_index, const Access& access, int64_t now_ms) {
  std::vector<uint32_t>& written = written_ms_[ttl_index];
  written.resize(table_.size());
  const auto now = static_cast<uint32_t>(now_ms - start_ms_ + 1);
  const int64_t ttl_ms = ttls_ms_[ttl_index];
  bool leading = true;
  uint64_t hit_blocks = 0;
  for (const uint32_t index : indexes_) {
    const bool resident = written[index] != 0 && int64_t{now} - int64_t{written[index]} <= ttl_ms;
    leading = leading && resident;
    if (leading) ++hit_blocks;
    if (!resident) written[index] = now;
  }
  fixed_tokens_[ttl_index] += TokensInBlocks(hit_blocks, block_tokens_, access.input_tokens);
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
