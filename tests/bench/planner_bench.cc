// How many block touches a second the simulators take, over a generated trace of growing sessions.
#include <chrono>
#include <cstdio>
#include <vector>

#include "kvstore/base/random.h"
#include "tools/cachesim/lru_curve.h"
#include "tools/cachesim/s3_fifo.h"
#include "tools/cachesim/ttl_curve.h"

namespace {

using cairn::tools::Access;

struct Session {
  std::vector<uint64_t> blocks;
};

// 2,000 sessions of up to 400 blocks, in a million requests or as many as `touches` allows.
template <typename Simulator>
void Measure(const char* name, Simulator& simulator, uint64_t touches_max) {
  cairn::kv::Random random(1);
  std::vector<Session> sessions(2'000);
  uint64_t next_id = 1;
  uint64_t touches = 0;
  uint64_t requests = 0;
  std::chrono::duration<double> busy{};
  while (touches < touches_max) {
    Session& session = sessions[random.Below(sessions.size())];
    if (session.blocks.size() > 400) session.blocks.clear();
    const uint64_t added = 1 + random.Below(8);
    for (uint64_t i = 0; i < added; ++i) session.blocks.push_back(next_id++);
    const Access access{.time_ms = static_cast<int64_t>(requests * 10),
                        .input_tokens = session.blocks.size() * 256,
                        .blocks = session.blocks};
    const auto started = std::chrono::steady_clock::now();
    simulator.Add(access);
    busy += std::chrono::steady_clock::now() - started;
    touches += session.blocks.size();
    ++requests;
  }
  std::printf("%-10s %6.1f M touches/s (%.1f M touches, %.1f M blocks, %.2f s)\n", name,
              static_cast<double>(touches) / busy.count() / 1e6, static_cast<double>(touches) / 1e6,
              static_cast<double>(next_id) / 1e6, busy.count());
}

}  // namespace

int main() {
  constexpr uint64_t kTouches = 40'000'000;
  cairn::tools::LruCurve lru(256);
  Measure("LRU curve", lru, kTouches);
  cairn::tools::TtlCurve ttl(256, {60'000, 300'000, 3'600'000, 86'400'000});
  Measure("TTL x 4", ttl, kTouches);
  cairn::tools::S3Fifo s3_fifo(256, 200'000);
  Measure("S3-FIFO", s3_fifo, kTouches);
  return 0;
}
