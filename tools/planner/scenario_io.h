// Reads scenarios from TOML or JSON and from key=value flags, and models from config.json.
#pragma once

#include <string>
#include <vector>

#include "tools/planner/scenario.h"

namespace cairn::tools {

// `path` ends in .toml or .json; empty = start from defaults. `settings` are "key=value" and win.
// Unknown keys, wrong units and impossible values are kInvalid with the key and what to do.
// A model.config is looked for beside the scenario file.
kv::Result<Scenario> LoadScenario(const std::string& path,
                                  const std::vector<std::string>& settings);

// The layout that a Hugging Face config.json describes: grouped-query or latent attention, sliding
// windows (sliding_window with layer_types or a pattern), V3.2 (index_head_dim), V4
// (compress_ratios), V4.1 (kv_source_layer_ids). `dtype` overrides torch_dtype; empty = as in the
// file. A family that is not understood is refused, never guessed.
kv::Result<kv::KvLayout> ParseModelConfig(const std::string& json, const std::string& dtype);
kv::Result<kv::KvLayout> LoadModelConfig(const std::string& path, const std::string& dtype);

kv::Result<std::string> ReadFile(const std::string& path);

}  // namespace cairn::tools
