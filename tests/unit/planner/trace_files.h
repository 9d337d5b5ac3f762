// Files for trace tests: written on the spot, or found among the project's shared traces.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tools/trace/trace_source.h"

namespace cairn::tools {

// Tests run side by side, each in a process of its own: their files must not meet.
inline std::string OwnFile(const std::string& name) {
  return ::testing::TempDir() + std::to_string(::getpid()) + "." + name;
}

inline std::string WriteTrace(const std::string& name, const std::string& text) {
  const std::string path = OwnFile(name);
  std::FILE* file = std::fopen(path.c_str(), "wb");
  EXPECT_EQ(std::fwrite(text.data(), 1, text.size(), file), text.size());
  std::fclose(file);
  return path;
}

inline std::string WriteGzip(const std::string& name, const std::string& text) {
  const std::string path = OwnFile(name);
  gzFile file = gzopen(path.c_str(), "wb");
  EXPECT_EQ(gzwrite(file, text.data(), static_cast<unsigned>(text.size())),
            static_cast<int>(text.size()));
  gzclose(file);
  return path;
}

// The path of a public trace, or empty where it is not at hand.
inline std::string SharedTrace(const std::string& name) {
  const char* shared = std::getenv("CAIRN_SHARED");
  const std::string folder =
      shared != nullptr ? shared : std::string(CAIRN_SOURCE_DIR) + "/../shared";
  const std::string path = folder + "/traces/" + name;
  return std::filesystem::exists(path) ? path : "";
}

inline std::vector<Request> ReadAll(TraceSource& source) {
  std::vector<Request> requests;
  Request request;
  while (true) {
    const kv::Result<bool> more = source.Next(request);
    EXPECT_TRUE(more.ok()) << more.status().ToString();
    if (!more.ok() || !more.value()) return requests;
    requests.push_back(request);
  }
}

inline std::vector<Request> ReadAll(const std::string& path, const TraceOptions& options = {}) {
  auto source = OpenTrace(path, options);
  EXPECT_TRUE(source.ok()) << source.status().ToString();
  return source.ok() ? ReadAll(*source.value()) : std::vector<Request>();
}

}  // namespace cairn::tools
