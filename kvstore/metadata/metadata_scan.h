// Walks all entries under a prefix, reading the next page while the last one is looked at.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "kvstore/io/workers.h"
#include "kvstore/metadata/metadata_store.h"

namespace cairn::kv {

inline constexpr size_t kScanPage = 2048;

// Calls visit(entry) for each entry whose key starts with `prefix`, ascending: on a worker, one at
// a time, so it must not touch what the loop changes meanwhile. `visit` must live until the task is
// done: give it a name, and capture nothing that does not.
template <typename Visit>
Task<Status> ScanAll(Workers& workers, MetadataStore& metadata, std::string prefix, Visit& visit) {
  auto reading = metadata.Scan(prefix, std::string(), kScanPage);
  while (true) {
    auto page = co_await reading;
    if (!page.ok()) co_return page.status();
    std::vector<MetadataStore::Entry> entries = std::move(page).value();
    const bool last = entries.size() < kScanPage;
    if (!last) reading = metadata.Scan(prefix, entries.back().key, kScanPage);
    std::function<void()> look = [&] {
      for (const MetadataStore::Entry& entry : entries) visit(entry);
      entries.clear();
    };
    co_await workers.Run(std::move(look));
    if (last) co_return Status();
  }
}

}  // namespace cairn::kv
