// Keeps sectors by copy-on-write, with one undo layer per sync mark.
#include "tests/sim/sim_media.h"

#include <cstring>
#include <set>
#include <utility>

#include "kvstore/base/check.h"

namespace cairn::sim {

SimMedia::PagePointer MakePage(const uint8_t* bytes) {
  static constexpr SimMedia::Page kZeros{};
  if (std::memcmp(bytes, kZeros.data(), kSector) == 0) return nullptr;
  auto page = std::make_shared<SimMedia::Page>();
  std::memcpy(page->data(), bytes, kSector);
  return page;
}

void SimMedia::Store(uint64_t sector, PagePointer page) {
  Remember(sector);
  SetPristine(sector, std::move(page));
  damage_.erase(sector);
}

void SimMedia::Lose(uint64_t sector, PagePointer page) {
  Remember(sector);
  PagePointer seen = Visible(sector);
  SetPristine(sector, std::move(page));
  damage_[sector] = std::move(seen);
}

void SimMedia::Damage(uint64_t sector, PagePointer page) { damage_[sector] = std::move(page); }

SimMedia::PagePointer SimMedia::Visible(uint64_t sector) const {
  const auto found = damage_.find(sector);
  return found != damage_.end() ? found->second : Pristine(sector);
}

SimMedia::PagePointer SimMedia::Pristine(uint64_t sector) const {
  const auto found = pristine_.find(sector);
  return found != pristine_.end() ? found->second : nullptr;
}

uint64_t SimMedia::MarkForSync() {
  const uint64_t mark = layers_.back().mark;
  layers_.push_back(Layer{.mark = mark + 1, .before = {}});
  return mark;
}

void SimMedia::MakeDurable(uint64_t mark) {
  while (layers_.front().mark <= mark) layers_.pop_front();
  KV_CHECK(!layers_.empty());  // MarkForSync left a younger layer.
}

void SimMedia::CutPower(kv::Random& random) {
  std::set<uint64_t> fallen;  // A sector falls back through consecutive layers only, newest first.
  for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
    for (auto& [sector, before] : layer->before) {
      bool covered_by_newer = false;
      for (auto newer = layers_.rbegin(); newer != layer; ++newer) {
        if (newer->before.contains(sector)) covered_by_newer = true;
      }
      if (covered_by_newer && !fallen.contains(sector)) continue;
      if (random.Chance(1, 2)) {
        fallen.erase(sector);
        continue;
      }
      fallen.insert(sector);
      SetPristine(sector, before.pristine);
      damage_.erase(sector);
      if (before.is_damaged) damage_[sector] = before.damage;
    }
  }
  const uint64_t mark = layers_.back().mark + 1;
  layers_.clear();
  layers_.push_back(Layer{.mark = mark, .before = {}});
}

void SimMedia::Wipe() {
  pristine_.clear();
  damage_.clear();
  const uint64_t mark = layers_.back().mark + 1;
  layers_.clear();
  layers_.push_back(Layer{.mark = mark, .before = {}});
}

uint64_t SimMedia::unsynced_sector_count() const {
  std::set<uint64_t> sectors;
  for (const Layer& layer : layers_) {
    for (const auto& [sector, before] : layer.before) sectors.insert(sector);
  }
  return sectors.size();
}

void SimMedia::Remember(uint64_t sector) {
  auto [place, inserted] = layers_.back().before.try_emplace(sector);
  if (!inserted) return;
  const auto damaged = damage_.find(sector);
  place->second.pristine = Pristine(sector);
  place->second.is_damaged = damaged != damage_.end();
  if (place->second.is_damaged) place->second.damage = damaged->second;
}

void SimMedia::SetPristine(uint64_t sector, PagePointer page) {
  if (page == nullptr) {
    pristine_.erase(sector);
  } else {
    pristine_[sector] = std::move(page);
  }
}

}  // namespace cairn::sim
