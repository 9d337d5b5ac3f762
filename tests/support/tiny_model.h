// Model files for tests: a tiny generated one, and the real SmolLM2 where it is present.
#pragma once

#include <string>

#include "engine/gguf/tiny_model.h"

namespace cairn::testing {

// Writes a tiny model into the test's temporary directory and returns its path.
std::string WriteTinyModel(const std::string& file_name,
                           const engine::TinyModelOptions& options = {});

// $CAIRN_MODEL, else the place where deploy/up puts SmolLM2-135M-Instruct. Empty when no file is
// there: such tests say GTEST_SKIP() << kNoRealModel.
std::string RealModelPath();
inline constexpr char kNoRealModel[] =
    "no SmolLM2-135M-Instruct.Q4_1.gguf: set CAIRN_MODEL or run deploy/up once";

}  // namespace cairn::testing
