// The KV layouts of models that people plan for, by name.
#pragma once

#include <span>
#include <string_view>

#include "kvstore/layout/kv_layout.h"

namespace cairn::kv {

struct KnownModel {
  KvLayout layout;
  std::string_view source;  // Where the shape comes from, for people.
};

// In alphabetical order.
std::span<const KnownModel> KnownModels();

// Ignores case. kNotFound lists the names that come nearest.
Result<KvLayout> FindModel(std::string_view name);

}  // namespace cairn::kv
