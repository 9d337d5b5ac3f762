// What models keep in their KV cache as text, as JSON and as a page.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kvstore/layout/kv_layout.h"

namespace cairn::tools {

struct ModelRow {
  kv::KvLayout layout;
  std::string source;  // Where its shape comes from: words, or a path.
};

struct ModelList {
  std::vector<ModelRow> models;
  uint64_t block_tokens = 256;
};

std::string ModelsText(const ModelList& list);
std::string ModelsJson(const ModelList& list);
std::string ModelsHtml(const ModelList& list);

}  // namespace cairn::tools
