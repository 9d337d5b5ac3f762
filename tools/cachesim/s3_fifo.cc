// The queues hold block indexes; a ghost is dropped lazily when it is no longer its block's latest.
#include "tools/cachesim/s3_fifo.h"

#include <algorithm>

#include "kvstore/base/check.h"

namespace cairn::tools {
namespace {

constexpr uint8_t kUsesMax = 3;

}  // namespace

S3Fifo::S3Fifo(uint64_t block_tokens, uint64_t capacity_blocks)
    : block_tokens_(block_tokens),
      capacity_blocks_(capacity_blocks),
      small_blocks_(std::max<uint64_t>(1, capacity_blocks / 10)) {
  KV_CHECK(capacity_blocks > 0);
}

void S3Fifo::Add(const Access& access) {
  table_.Intern(access.blocks, indexes_);
  blocks_.resize(std::max<size_t>(blocks_.size(), table_.size()));
  uint64_t hit_blocks = 0;
  while (hit_blocks < indexes_.size() && Resident(indexes_[hit_blocks])) ++hit_blocks;
  for (size_t i = indexes_.size(); i-- > 0;) Use(indexes_[i]);
  input_tokens_ += access.input_tokens;
  hit_tokens_ += TokensInBlocks(hit_blocks, block_tokens_, access.input_tokens);
}

double S3Fifo::HitRate() const {
  return input_tokens_ == 0 ? 0
                            : static_cast<double>(hit_tokens_) / static_cast<double>(input_tokens_);
}

bool S3Fifo::Resident(uint32_t index) const {
  if (index >= blocks_.size()) return false;
  return blocks_[index].place == Place::kSmall || blocks_[index].place == Place::kMain;
}

void S3Fifo::Use(uint32_t index) {
  if (index >= blocks_.size()) blocks_.resize(size_t{index} + 1);
  if (Resident(index)) {
    blocks_[index].uses =
        std::min<uint8_t>(kUsesMax, static_cast<uint8_t>(blocks_[index].uses + 1));
    return;
  }
  while (small_.size() + main_.size() >= capacity_blocks_) EvictOne();
  const bool haunted = blocks_[index].place == Place::kGhost;
  if (haunted) --ghosts_alive_;
  (haunted ? main_ : small_).push_back(index);
  blocks_[index].place = haunted ? Place::kMain : Place::kSmall;
  blocks_[index].uses = 0;
}

void S3Fifo::EvictOne() {
  if (small_.size() >= small_blocks_ || main_.empty()) {
    EvictFromSmall();
  } else {
    EvictFromMain();
  }
}

// Moves used blocks to the main queue until one leaves the cache.
void S3Fifo::EvictFromSmall() {
  while (!small_.empty()) {
    const uint32_t index = small_.front();
    small_.pop_front();
    Block& block = blocks_[index];
    if (block.uses <= 1) {
      Haunt(index);
      return;
    }
    block.place = Place::kMain;
    block.uses = 0;
    main_.push_back(index);
  }
}

// Gives used blocks another round until one leaves the cache.
void S3Fifo::EvictFromMain() {
  while (true) {
    const uint32_t index = main_.front();
    main_.pop_front();
    Block& block = blocks_[index];
    if (block.uses == 0) {
      block.place = Place::kNowhere;
      return;
    }
    --block.uses;
    main_.push_back(index);
  }
}

void S3Fifo::Haunt(uint32_t index) {
  Block& block = blocks_[index];
  block.place = Place::kGhost;
  ghosts_.push_back({index, ++block.ghost_entry});
  ++ghosts_alive_;
  while (ghosts_alive_ > std::max<uint64_t>(1, capacity_blocks_ - small_blocks_)) {
    const Ghost oldest = ghosts_.front();
    ghosts_.pop_front();
    Block& gone = blocks_[oldest.index];
    if (gone.place == Place::kGhost && gone.ghost_entry == oldest.entry) {
      gone.place = Place::kNowhere;
      --ghosts_alive_;
    }
  }
}

}  // namespace cairn::tools
