// Every transformation is a source around a source.
#include "tools/trace/transform.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <queue>
#include <unordered_map>

#include "kvstore/base/digest.h"

namespace cairn::tools {
namespace {

using SourceResult = kv::Result<std::unique_ptr<TraceSource>>;

// splitmix64: a permutation, so distinct ids stay distinct under one salt.
uint64_t Mix(uint64_t value) {
  value += UINT64_C(0x9E3779B97F4A7C15);
  value = (value ^ (value >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  value = (value ^ (value >> 27)) * UINT64_C(0x94D049BB133111EB);
  return value ^ (value >> 31);
}

class Wrapper : public TraceSource {
 public:
  explicit Wrapper(std::unique_ptr<TraceSource> source) : source_(std::move(source)) {}
  uint64_t block_tokens() const override { return source_->block_tokens(); }
  bool has_partial_blocks() const override { return source_->has_partial_blocks(); }
  const TraceIssues& issues() const override { return source_->issues(); }

 protected:
  std::unique_ptr<TraceSource> source_;
};

class SampledSource : public Wrapper {
 public:
  SampledSource(std::unique_ptr<TraceSource> source, const SampleOptions& options)
      : Wrapper(std::move(source)), options_(options) {}

  kv::Result<bool> Next(Request& request) override {
    while (true) {
      KV_ASSIGN_OR_RETURN(const bool more, source_->Next(request));
      if (!more) return false;
      uint64_t who = request.session;
      if (who == 0 && !request.blocks.empty()) {
        who = request.blocks[std::min<size_t>(request.blocks.size(), options_.root_blocks) - 1];
      }
      const double draw = static_cast<double>(Mix(who ^ Mix(options_.seed)) >> 11) * 0x1.0p-53;
      if (draw < options_.share) return true;
    }
  }

 private:
  const SampleOptions options_;
};

class ScaledSource : public Wrapper {
 public:
  ScaledSource(std::unique_ptr<TraceSource> source, const ScaleOptions& options)
      : Wrapper(std::move(source)), options_(options) {}

  kv::Result<bool> Next(Request& request) override {
    // What is held may go once the source is past it: copies are only ever later.
    while (!ended_ && (held_.empty() || held_.top().request.time_ms > source_ms_)) {
      KV_ASSIGN_OR_RETURN(const bool more, source_->Next(original_));
      if (more) {
        Hold();
      } else {
        ended_ = true;
      }
    }
    if (held_.empty()) return false;
    request = held_.top().request;
    held_.pop();
    return true;
  }

 private:
  struct Held {
    Request request;
    uint64_t order;
    bool operator<(const Held& other) const {  // The earliest is on top.
      return std::pair(request.time_ms, order) > std::pair(other.request.time_ms, other.order);
    }
  };

  void Hold() {
    if (order_ == 0) start_ms_ = original_.time_ms;
    const double since_ms =
        static_cast<double>(original_.time_ms - start_ms_) * options_.time_scale;
    source_ms_ = start_ms_ + static_cast<int64_t>(std::llround(since_ms));
    for (uint32_t copy = 0; copy < options_.copies; ++copy) {
      Held held{original_, order_++};
      held.request.time_ms = source_ms_ + Delay(copy);
      if (copy > 0) {
        const uint64_t salt = Mix(options_.seed * 1'000'003 + copy);
        if (held.request.session != 0) held.request.session = Mix(held.request.session ^ salt);
        for (size_t i = options_.shared_blocks; i < held.request.blocks.size(); ++i) {
          held.request.blocks[i] = Mix(held.request.blocks[i] ^ salt);
        }
      }
      held_.push(std::move(held));
    }
  }

  // One delay for all requests of a session's copy, or they would overtake each other.
  int64_t Delay(uint32_t copy) const {
    if (copy == 0 || options_.jitter_ms == 0) return 0;
    const uint64_t draw = Mix(Mix(original_.session ^ options_.seed) + copy);
    return static_cast<int64_t>(draw % static_cast<uint64_t>(options_.jitter_ms));
  }

  const ScaleOptions options_;
  Request original_;
  std::priority_queue<Held> held_;
  uint64_t order_ = 0;
  int64_t start_ms_ = 0;
  int64_t source_ms_ = 0;
  bool ended_ = false;
};

// The first 63 bits of HMAC-SHA256(key, value): JSON readers take them for positive integers.
uint64_t KeyedHash(const std::string& key, uint64_t value) {
  std::array<uint8_t, 64> inner;
  std::array<uint8_t, 64> outer;
  for (size_t i = 0; i < inner.size(); ++i) {
    const auto byte = static_cast<uint8_t>(i < key.size() ? key[i] : 0);
    inner[i] = static_cast<uint8_t>(byte ^ 0x36);
    outer[i] = static_cast<uint8_t>(byte ^ 0x5c);
  }
  std::array<uint8_t, 8> message;
  for (size_t i = 0; i < message.size(); ++i) message[i] = static_cast<uint8_t>(value >> (8 * i));
  kv::Sha256Stream first;
  first.Add(inner);
  first.Add(message);
  kv::Sha256Stream second;
  second.Add(outer);
  second.Add(first.Finish());
  const kv::Sha256Digest digest = second.Finish();
  uint64_t hash = 0;
  std::memcpy(&hash, digest.data(), sizeof hash);
  return hash >> 1;
}

class AnonymisedSource : public Wrapper {
 public:
  AnonymisedSource(std::unique_ptr<TraceSource> source, std::string key)
      : Wrapper(std::move(source)), key_(std::move(key)) {}

  kv::Result<bool> Next(Request& request) override {
    KV_ASSIGN_OR_RETURN(const bool more, source_->Next(request));
    if (!more) return false;
    if (!started_) start_ms_ = request.time_ms;
    started_ = true;
    request.time_ms -= start_ms_;
    if (request.session != 0) request.session = std::max<uint64_t>(1, Named(~request.session));
    for (uint64_t& block : request.blocks) block = Named(block);
    return true;
  }

 private:
  uint64_t Named(uint64_t value) {
    // Chains repeat their blocks all the time: a bounded memory saves most of the hashing.
    if (known_.size() > kKnownMax) known_.clear();
    const auto [entry, added] = known_.try_emplace(value, 0);
    if (added) entry->second = KeyedHash(key_, value);
    return entry->second;
  }

  static constexpr size_t kKnownMax = 1 << 20;
  const std::string key_;
  std::unordered_map<uint64_t, uint64_t> known_;
  bool started_ = false;
  int64_t start_ms_ = 0;
};

kv::Status Invalid(std::string message) { return {kv::Code::kInvalid, std::move(message)}; }

}  // namespace

SourceResult Sample(std::unique_ptr<TraceSource> source, const SampleOptions& options) {
  if (!(options.share > 0 && options.share <= 1)) return Invalid("a sample's share is in (0, 1]");
  if (options.root_blocks == 0) return Invalid("requests share at least 1 leading block");
  return std::unique_ptr<TraceSource>(std::make_unique<SampledSource>(std::move(source), options));
}

SourceResult Scale(std::unique_ptr<TraceSource> source, const ScaleOptions& options) {
  if (options.copies == 0 || options.copies > 10'000) return Invalid("copies are 1 to 10,000");
  if (!(options.time_scale > 0 && options.time_scale <= 1e6)) {
    return Invalid("the time scale is above 0: 0.5 makes a trace twice as fast");
  }
  if (options.jitter_ms < 0) return Invalid("the jitter is not negative");
  return std::unique_ptr<TraceSource>(std::make_unique<ScaledSource>(std::move(source), options));
}

SourceResult Anonymise(std::unique_ptr<TraceSource> source, std::string key) {
  if (key.size() < 16) {
    return Invalid("the key has " + std::to_string(key.size()) +
                   " bytes: use at least 16 random ones, or the ids can be guessed back");
  }
  if (key.size() > 64) {
    const kv::Sha256Digest digest = kv::Sha256(kv::AsBytes(key));
    key.assign(reinterpret_cast<const char*>(digest.data()), digest.size());
  }
  return std::unique_ptr<TraceSource>(
      std::make_unique<AnonymisedSource>(std::move(source), std::move(key)));
}

}  // namespace cairn::tools
