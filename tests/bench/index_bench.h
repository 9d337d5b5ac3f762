// What the parts of index_bench share: options, figures, clocks.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "kvstore/base/status.h"
#include "tests/bench/bench_options.h"

namespace cairn::bench {

struct Figure {
  std::string name;
  double value = 0;
  std::string unit;
  double baseline = 0;  // A limit, or a rival of the same run.
  std::string against;  // What the baseline is.
};

inline double Since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

inline void Must(bool ok, const std::string& what) {
  if (ok) return;
  std::fprintf(stderr, "index_bench: %s\n", what.c_str());
  std::exit(1);
}
inline void Must(const kv::Status& status) { Must(status.ok(), status.ToString()); }

// index_bench_big.cc: start, memory and lookups of an index of millions of blocks, whose segments
// are sparse files and whose metadata is written as docs/formats says.
std::vector<Figure> MeasureBigIndex(const Options& options);
// index_bench_live.cc: lookups while reads saturate the device; a start without any metadata.
std::vector<Figure> MeasureLiveStore(const Options& options);

}  // namespace cairn::bench
