// Callbacks hand their answer to a promise; the batch's memory serves reads and writes in turn.
#include "tools/replay/store_driver.h"

#include <algorithm>
#include <chrono>
#include <future>

#include "tools/replay/block_content.h"

namespace cairn::tools {
namespace {

constexpr uint64_t kBatchBytes = 64 * kv::kMiB;
constexpr int kPutAttempts = 20;

int64_t NowNanos() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Gives `call` a callback and waits for what it is called with.
template <typename T, typename Call>
T Await(const Call& call) {
  std::promise<T> promise;
  call([&promise](T answer) { promise.set_value(std::move(answer)); });
  return promise.get_future().get();
}

uint64_t BatchOf(uint64_t stride) {
  const uint64_t runs = kBatchBytes / (stride * kv::kRunBlocksDefault);
  return std::max<uint64_t>(1, runs) * kv::kRunBlocksDefault;
}

}  // namespace

StoreDriver::StoreDriver(kv::Client& client, kv::NamespaceId space, uint64_t block_bytes)
    : client_(client),
      space_(space),
      block_bytes_(block_bytes),
      stride_(kv::AlignUp(block_bytes, kv::kSectorSize)),
      batch_(BatchOf(stride_)),
      memory_(batch_ * stride_) {}

kv::MutableByteSpan StoreDriver::Place(uint64_t at) {
  return memory_.span().subspan(at * stride_, stride_);
}

kv::Result<uint64_t> StoreDriver::Run(std::span<const uint64_t> chain, uint64_t prompt_blocks,
                                      bool read) {
  ids_.clear();
  for (const uint64_t id : chain) ids_.push_back(kv::BlockId{{.high = 0, .low = id}});
  prompt_.assign(ids_.begin(), ids_.begin() + static_cast<ptrdiff_t>(prompt_blocks));
  KV_ASSIGN_OR_RETURN(const uint64_t found, Lookup());
  uint64_t hit = found;
  if (read) {
    KV_ASSIGN_OR_RETURN(hit, ReadAndVerify(chain, found));
  }
  KV_RETURN_IF_ERROR(PutFrom(chain, hit));
  return hit;
}

kv::Result<uint64_t> StoreDriver::Lookup() {
  const int64_t begin = NowNanos();
  auto hit = Await<kv::Result<kv::ChainHit>>(
      [&](auto done) { client_.Lookup(space_, prompt_, std::move(done)); });
  counts_.lookup_nanos.push_back(NowNanos() - begin);
  if (!hit.ok()) return hit.status();
  return uint64_t{hit.value().blocks};
}

// The leading blocks that could be read.
kv::Result<uint64_t> StoreDriver::ReadAndVerify(std::span<const uint64_t> chain, uint64_t hit) {
  int64_t nanos = 0;
  for (uint64_t begin = 0; begin < hit; begin += batch_) {
    const uint64_t end = std::min(hit, begin + batch_);
    std::vector<kv::BlockRead> reads;
    for (uint64_t i = begin; i < end; ++i) reads.push_back({ids_[i], Place(i - begin)});
    const int64_t started = NowNanos();
    const auto results = Await<std::vector<kv::BlockReadResult>>([&](auto done) {
      client_.Get(space_, ids_, std::move(reads), kv::kNever, std::move(done));
    });
    nanos += NowNanos() - started;
    for (uint64_t i = begin; i < end; ++i) {
      const kv::BlockReadResult& result = results[i - begin];
      if (result.status.code() == kv::Code::kNotFound) {
        counts_.blocks_lost += hit - i;
        return i;
      }
      KV_RETURN_IF_ERROR(result.status);
      ++counts_.blocks_read;
      const std::string name = "block " + std::to_string(chain[i]);
      if (result.size != block_bytes_) {
        return kv::Status(kv::Code::kCorrupt, name + " has " + std::to_string(result.size) +
                                                  " bytes, not " + std::to_string(block_bytes_));
      }
      const auto wrong = FirstWrongByte(chain[i], Place(i - begin).first(block_bytes_));
      if (wrong) {
        return kv::Status(kv::Code::kCorrupt,
                          name + ": byte " + std::to_string(*wrong) + " is wrong");
      }
    }
  }
  if (hit > 0) counts_.get_nanos.push_back(nanos);
  return hit;
}

kv::Status StoreDriver::PutFrom(std::span<const uint64_t> chain, uint64_t first) {
  int64_t nanos = 0;
  for (uint64_t begin = first; begin < chain.size();) {
    // Batches end where runs end, so that they do not split stripes.
    const uint64_t end = std::min<uint64_t>(chain.size(), (begin / batch_ + 1) * batch_);
    std::vector<kv::BlockWrite> blocks;
    for (uint64_t i = begin; i < end; ++i) {
      const kv::MutableByteSpan place = Place(i - begin).first(block_bytes_);
      FillBlock(chain[i], place);
      blocks.push_back({ids_[i], place});
    }
    const int64_t started = NowNanos();
    uint64_t failed = 0;
    for (int attempt = 0; attempt < kPutAttempts; ++attempt) {
      const auto outcomes = Await<std::vector<kv::Status>>([&](auto done) {
        client_.Put({.space = space_,
                     .chain = ids_,
                     .first = static_cast<uint32_t>(begin),
                     .blocks = blocks},
                    std::move(done));
      });
      failed = static_cast<uint64_t>(
          std::count_if(outcomes.begin(), outcomes.end(),
                        [](const kv::Status& outcome) { return !outcome.ok(); }));
      const bool again =
          std::any_of(outcomes.begin(), outcomes.end(), [](const kv::Status& outcome) {
            return outcome.code() == kv::Code::kOverloaded;
          });
      if (!again) break;
    }
    nanos += NowNanos() - started;
    counts_.puts_failed += failed;
    begin = end;
  }
  if (first < chain.size()) counts_.put_nanos.push_back(nanos);
  return kv::Status();
}

}  // namespace cairn::tools
