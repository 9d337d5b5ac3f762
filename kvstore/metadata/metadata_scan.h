// Walks all entries under a prefix, reading the next page while the last one is looked at.
#pragma once

#include <string>
#include <utility>

#include "kvstore/metadata/metadata_store.h"

namespace cairn::kv {

inline constexpr size_t kScanPage = 2048;

// Calls visit(entry) for each entry whose key starts with `prefix`, ascending. `visit` must live
// until the task is done: give it a name, and capture nothing that does not.
template <typename Visit>
Task<Status> ScanAll(MetadataStore& metadata, std::string prefix, Visit& visit) {
  auto reading = metadata.Scan(prefix, std::string(), kScanPage);
  while (true) {
    const auto page = co_await reading;
    if (!page.ok()) co_return page.status();
    const bool last = page.value().size() < kScanPage;
    if (!last) reading = metadata.Scan(prefix, page.value().back().key, kScanPage);
    for (const MetadataStore::Entry& entry : page.value()) visit(entry);
    if (last) co_return Status();
  }
}

}  // namespace cairn::kv
