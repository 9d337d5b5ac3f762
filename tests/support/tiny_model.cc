// Model files for tests: a tiny generated one, and the real SmolLM2 where it is present.
#include "tests/support/tiny_model.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace cairn::testing {

std::string WriteTinyModel(const std::string& file_name, const engine::TinyModelOptions& options) {
  kv::Result<engine::GgufWriter> model = engine::MakeTinyModel(options);
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  const std::string path = ::testing::TempDir() + file_name;
  const kv::Status written = model.value().WriteTo(path);
  EXPECT_TRUE(written.ok()) << written.ToString();
  return path;
}

std::string RealModelPath() {
  std::string path;
  if (const char* named = std::getenv("CAIRN_MODEL"); named != nullptr) {
    path = named;
  } else if (const char* home = std::getenv("HOME"); home != nullptr) {
    path = std::string(home) + "/.cache/cairn/models/SmolLM2-135M-Instruct.Q4_1.gguf";
  }
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) ? path : std::string();
}

}  // namespace cairn::testing
