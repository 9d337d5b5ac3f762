// The command line that the benchmarks of the store share.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace cairn::bench {

struct Options {
  bool quick = false;
  std::string folder = ".";  // Where data goes, on the device to be measured.
  std::string json;          // Where figures go as JSON; empty: nowhere.
  std::string only;          // Figures whose names begin so; empty: all.

  bool Wants(const std::string& name) const { return name.rfind(only, 0) == 0; }
};

// Ends the program with 2 when it does not understand.
inline Options ParseOptions(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    if (argument == "--quick") {
      options.quick = true;
    } else if (argument == "--dir" && i + 1 < count) {
      options.folder = arguments[++i];
    } else if (argument == "--json" && i + 1 < count) {
      options.json = arguments[++i];
    } else if (argument == "--only" && i + 1 < count) {
      options.only = arguments[++i];
    } else {
      std::fprintf(stderr, "usage: %s [--quick] [--dir FOLDER] [--json FILE] [--only NAME]\n",
                   arguments[0]);
      std::exit(2);
    }
  }
  return options;
}

}  // namespace cairn::bench
