// Linear probing from a multiplicative hash, at most half full.
#include "tools/cachesim/block_table.h"

#include <utility>

#include "kvstore/base/check.h"

namespace cairn::tools {
namespace {

constexpr uint32_t kFirstBits = 12;
constexpr size_t kPrefetchAhead = 12;
constexpr uint32_t kBlocksMax = UINT32_C(1) << 31;

}  // namespace

BlockTable::BlockTable() : cells_(size_t{1} << kFirstBits), shift_(64 - kFirstBits) {}

uint64_t BlockTable::Home(uint64_t id) const {
  const uint64_t spread = ((id >> 2) * UINT64_C(0x9E3779B97F4A7C15)) >> shift_;
  return (spread & ~UINT64_C(3)) | (id & 3);
}

void BlockTable::Intern(std::span<const uint64_t> ids, std::vector<uint32_t>& indexes) {
  while ((ids_.size() + ids.size()) * 2 > cells_.size()) Grow();
  indexes.resize(ids.size());
  size_t guess = ids_.size();
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i + kPrefetchAhead < ids.size()) __builtin_prefetch(&cells_[Home(ids[i + kPrefetchAhead])]);
    const bool is_next = guess < ids_.size() && ids_[guess] == ids[i];
    indexes[i] = is_next ? static_cast<uint32_t>(guess) : FindOrAdd(ids[i]);
    guess = size_t{indexes[i]} + 1;
  }
}

uint32_t BlockTable::FindOrAdd(uint64_t id) {
  const uint64_t mask = cells_.size() - 1;
  uint64_t at = Home(id);
  while (cells_[at].index_plus_one != 0) {
    if (cells_[at].id == id) return cells_[at].index_plus_one - 1;
    at = (at + 1) & mask;
  }
  KV_CHECK(ids_.size() < kBlocksMax);
  ids_.push_back(id);
  cells_[at] = {id, size()};
  return size() - 1;
}

void BlockTable::Grow() {
  std::vector<Cell> old(cells_.size() * 2);
  std::swap(old, cells_);
  --shift_;
  const uint64_t mask = cells_.size() - 1;
  for (const Cell& cell : old) {
    if (cell.index_plus_one == 0) continue;
    uint64_t at = Home(cell.id);
    while (cells_[at].index_plus_one != 0) at = (at + 1) & mask;
    cells_[at] = cell;
  }
}

}  // namespace cairn::tools
