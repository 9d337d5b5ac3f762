// Counts how many blocks in a row end at each length.
#include "kvstore/client/restorable.h"

#include <algorithm>

namespace cairn::kv {

std::vector<uint32_t> RestorableLengths(std::span<const GroupNeed> groups, uint32_t chain_blocks) {
  std::vector<uint32_t> lengths;
  std::vector<uint32_t> in_a_row(groups.size(), 0);  // Present blocks that end where we are.
  for (uint32_t block = 0; block < chain_blocks; ++block) {
    bool all = !groups.empty();
    for (size_t g = 0; g < groups.size(); ++g) {
      const GroupNeed& need = groups[g];
      const std::vector<EachHit::Block>& found = need.hit->blocks;
      const bool is_there = block >= need.first && block - need.first < found.size() &&
                            found[block - need.first].miss == MissReason::kNone;
      in_a_row[g] = is_there ? in_a_row[g] + 1 : 0;
      const uint32_t needed = need.window == 0 ? block + 1 : std::min(need.window, block + 1);
      all = all && in_a_row[g] >= needed;
    }
    if (all) lengths.push_back(block + 1);
  }
  return lengths;
}

uint32_t LongestRestorable(std::span<const GroupNeed> groups, uint32_t chain_blocks) {
  const std::vector<uint32_t> lengths = RestorableLengths(groups, chain_blocks);
  return lengths.empty() ? 0 : lengths.back();
}

}  // namespace cairn::kv
