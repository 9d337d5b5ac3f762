// Numbers blocks 0, 1, 2, ... in the order in which they are first seen.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cairn::tools {

// A flat hash table from 64-bit block ids to dense indexes, which then index plain arrays.
// Four neighbouring ids share a cache line, since chains are often numbered in a row.
class BlockTable {
 public:
  BlockTable();

  // The index of each id, in order; new ids are added. `indexes` is resized to fit.
  void Intern(std::span<const uint64_t> ids, std::vector<uint32_t>& indexes);

  uint32_t size() const { return static_cast<uint32_t>(ids_.size()); }

 private:
  struct Cell {
    uint64_t id = 0;
    uint32_t index_plus_one = 0;  // 0 = empty.
  };

  uint64_t Home(uint64_t id) const;
  uint32_t FindOrAdd(uint64_t id);
  void Grow();

  std::vector<Cell> cells_;
  std::vector<uint64_t> ids_;  // By index: a chain's blocks mostly came one after another.
  uint32_t shift_;
};

}  // namespace cairn::tools
