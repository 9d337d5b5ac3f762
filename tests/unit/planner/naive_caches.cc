// Lists and linear searches only.
#include "tests/unit/planner/naive_caches.h"

#include <algorithm>
#include <list>
#include <map>

namespace cairn::tools {
namespace {

template <typename IsResident>
uint64_t HitTokens(const NaiveRequest& request, uint64_t block_tokens, IsResident is_resident) {
  uint64_t hits = 0;
  while (hits < request.blocks.size() && is_resident(request.blocks[hits])) ++hits;
  return std::min(request.input_tokens, hits * block_tokens);
}

double Rate(const std::vector<NaiveRequest>& trace, uint64_t hit_tokens) {
  uint64_t input_tokens = 0;
  for (const NaiveRequest& request : trace) input_tokens += request.input_tokens;
  return static_cast<double>(hit_tokens) / static_cast<double>(input_tokens);
}

bool Holds(const std::list<uint64_t>& list, uint64_t id) {
  return std::find(list.begin(), list.end(), id) != list.end();
}

}  // namespace

std::vector<NaiveRequest> RandomTrace(uint64_t seed, uint64_t block_tokens, int requests) {
  kv::Random random(seed);
  std::vector<NaiveRequest> trace;
  std::vector<std::vector<uint64_t>> sessions;
  uint64_t next_id = 1;
  int64_t now_ms = 0;
  for (int i = 0; i < requests; ++i) {
    if (sessions.empty() || random.Chance(1, 12)) sessions.emplace_back();
    std::vector<uint64_t>& chain = sessions[random.Below(sessions.size())];
    if (random.Chance(1, 8)) chain.resize(chain.size() - random.Below(chain.size() + 1));
    const uint64_t added = random.Below(6);
    for (uint64_t k = 0; k < added; ++k) chain.push_back(next_id++);
    if (chain.empty()) chain.push_back(next_id++);
    now_ms += static_cast<int64_t>(random.Below(2'000));
    const uint64_t missing = random.Below(block_tokens);  // The last block may be partial.
    trace.push_back({now_ms, chain.size() * block_tokens - missing, chain});
  }
  return trace;
}

std::vector<NaiveRequest> UnchainedTrace(uint64_t seed, uint64_t block_tokens, int requests) {
  kv::Random random(seed);
  std::vector<NaiveRequest> trace;
  for (int i = 0; i < requests; ++i) {
    NaiveRequest request{i * 500, 0, {}};
    const uint64_t count = random.Below(8);
    for (uint64_t k = 0; k < count; ++k) request.blocks.push_back(random.Below(40) << 33);
    request.input_tokens = count * block_tokens + 3;  // A tail that fills no block.
    trace.push_back(std::move(request));
  }
  return trace;
}

double NaiveLru(const std::vector<NaiveRequest>& trace, uint64_t block_tokens, size_t capacity) {
  std::list<uint64_t> newest_first;
  uint64_t hit_tokens = 0;
  for (const NaiveRequest& request : trace) {
    hit_tokens +=
        HitTokens(request, block_tokens, [&](uint64_t id) { return Holds(newest_first, id); });
    for (auto id = request.blocks.rbegin(); id != request.blocks.rend(); ++id) {
      newest_first.remove(*id);
      newest_first.push_front(*id);
      if (newest_first.size() > capacity) newest_first.pop_back();
    }
  }
  return Rate(trace, hit_tokens);
}

double NaiveTtl(const std::vector<NaiveRequest>& trace, uint64_t block_tokens, int64_t ttl_ms,
                NaiveTtlKind kind) {
  std::map<uint64_t, int64_t> since_ms;
  uint64_t hit_tokens = 0;
  for (const NaiveRequest& request : trace) {
    std::erase_if(since_ms,
                  [&](const auto& entry) { return request.time_ms - entry.second > ttl_ms; });
    hit_tokens +=
        HitTokens(request, block_tokens, [&](uint64_t id) { return since_ms.contains(id); });
    for (const uint64_t id : request.blocks) {
      if (kind == NaiveTtlKind::kRefreshed) since_ms[id] = request.time_ms;
      if (kind == NaiveTtlKind::kFixed) since_ms.emplace(id, request.time_ms);
    }
  }
  return Rate(trace, hit_tokens);
}

double NaiveS3Fifo(const std::vector<NaiveRequest>& trace, uint64_t block_tokens, size_t capacity) {
  std::list<uint64_t> small, main, ghost;  // Oldest first.
  std::map<uint64_t, int> uses;
  const size_t small_capacity = std::max<size_t>(1, capacity / 10);
  const size_t ghost_capacity = std::max<size_t>(1, capacity - small_capacity);
  const auto evict_from_small = [&] {
    while (!small.empty()) {
      const uint64_t id = small.front();
      small.pop_front();
      if (uses[id] > 1) {
        main.push_back(id);
        uses[id] = 0;
        continue;
      }
      ghost.push_back(id);
      if (ghost.size() > ghost_capacity) ghost.pop_front();
      return;
    }
  };
  const auto evict_from_main = [&] {
    while (true) {
      const uint64_t id = main.front();
      main.pop_front();
      if (uses[id] == 0) return;
      --uses[id];
      main.push_back(id);
    }
  };
  uint64_t hit_tokens = 0;
  for (const NaiveRequest& request : trace) {
    hit_tokens += HitTokens(request, block_tokens,
                            [&](uint64_t id) { return Holds(small, id) || Holds(main, id); });
    for (auto id = request.blocks.rbegin(); id != request.blocks.rend(); ++id) {
      if (Holds(small, *id) || Holds(main, *id)) {
        uses[*id] = std::min(3, uses[*id] + 1);
        continue;
      }
      while (small.size() + main.size() >= capacity) {
        (small.size() >= small_capacity || main.empty()) ? evict_from_small() : evict_from_main();
      }
      const bool haunted = Holds(ghost, *id);
      (haunted ? main : small).push_back(*id);
      ghost.remove(*id);
      uses[*id] = 0;
    }
  }
  return Rate(trace, hit_tokens);
}

}  // namespace cairn::tools
