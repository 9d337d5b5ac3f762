// Measures the index: start and memory with 10 M blocks, lookups, and a scan without metadata.
//
//   index_bench [--quick] [--dir FOLDER] [--json FILE]
// --quick takes a tenth of the blocks.
#include "tests/bench/index_bench.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace cairn::bench {
namespace {

void Report(const std::vector<Figure>& figures, const std::string& path) {
  std::string json = "[";
  for (const Figure& figure : figures) {
    const double ratio = figure.value / figure.baseline;
    std::printf("%-28s %10.4g %-10s ratio %.3f to %.4g (%s)\n", figure.name.c_str(), figure.value,
                figure.unit.c_str(), ratio, figure.baseline, figure.against.c_str());
    char line[300];
    std::snprintf(line, sizeof(line),
                  "%s{\"name\": \"%s\", \"value\": %.6g, \"unit\": \"%s\", \"baseline\": %.6g, "
                  "\"ratio\": %.4f}",
                  json.size() > 1 ? ", " : "", figure.name.c_str(), figure.value,
                  figure.unit.c_str(), figure.baseline, ratio);
    json += line;
  }
  if (!path.empty()) std::ofstream(path) << json << "]\n";
}

int Main(Options options) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const std::string folder = options.folder + "/index-bench." + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  options.folder = folder;
  std::vector<Figure> figures = MeasureBigIndex(options);
  const std::vector<Figure> live = MeasureLiveStore(options);
  figures.insert(figures.end(), live.begin(), live.end());
  std::filesystem::remove_all(folder);
  Report(figures, options.json);
  return 0;
}

}  // namespace
}  // namespace cairn::bench

int main(int count, char** arguments) {
  cairn::bench::Options options = cairn::bench::ParseOptions(count, arguments);
  return cairn::bench::Main(options);
}
