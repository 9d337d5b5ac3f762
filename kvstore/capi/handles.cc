// Queues, and the translation of words between C and C++.
#include "kvstore/capi/handles.h"

#include <utility>

namespace {

constexpr int64_t kNanosPerMilli = 1'000'000;

}  // namespace

void cairn_queue::Add(uint64_t tag, const cairn::kv::Status& outcome) {
  cairn_completion completion{};
  completion.tag = tag;
  completion.code = cairn::kv::CodeOf(outcome);
  cairn::kv::CopyMessage(outcome.message(), completion.message, sizeof(completion.message));
  const std::lock_guard lock(mutex_);
  waiting_.push_back(completion);
  // Under the lock: who takes the last one may free the queue at once.
  if (waiting_.size() == 1) ready_->Signal();
}

size_t cairn_queue::TakeNow(cairn_completion* completions, size_t max) {
  const std::lock_guard lock(mutex_);
  size_t taken = 0;
  while (taken < max && !waiting_.empty()) {
    completions[taken++] = waiting_.front();
    waiting_.pop_front();
  }
  if (taken > 0 && waiting_.empty()) ready_->Drain();
  return taken;
}

size_t cairn_queue::Take(cairn_completion* completions, size_t max, int timeout_ms) {
  if (max == 0) return 0;
  while (true) {
    const size_t taken = TakeNow(completions, max);
    if (taken > 0 || timeout_ms == 0) return taken;
    // Another thread may be faster: then an unlimited wait begins anew.
    (void)ready_->Wait({timeout_ms * kNanosPerMilli});
    if (timeout_ms > 0) return TakeNow(completions, max);
  }
}

namespace cairn::kv {

cairn_code CodeOf(const Status& status) {
  static_assert(static_cast<int>(Code::kOk) == CAIRN_OK);
  static_assert(static_cast<int>(Code::kNotFound) == CAIRN_NOT_FOUND);
  static_assert(static_cast<int>(Code::kUnavailable) == CAIRN_UNAVAILABLE);
  static_assert(static_cast<int>(Code::kCorrupt) == CAIRN_CORRUPT);
  static_assert(static_cast<int>(Code::kOverloaded) == CAIRN_OVERLOADED);
  static_assert(static_cast<int>(Code::kDeadline) == CAIRN_DEADLINE);
  static_assert(static_cast<int>(Code::kInvalid) == CAIRN_INVALID);
  static_assert(static_cast<int>(Code::kNoSpace) == CAIRN_NO_SPACE);
  static_assert(static_cast<int>(Code::kConflict) == CAIRN_CONFLICT);
  return static_cast<cairn_code>(status.code());
}

void CopyMessage(std::string_view text, char* message, size_t size) {
  if (message == nullptr || size == 0) return;
  const size_t length = std::min(text.size(), size - 1);
  if (length > 0) std::memcpy(message, text.data(), length);
  message[length] = '\0';
}

cairn_id ToC(const Id128& id) {
  cairn_id bytes{};
  for (size_t i = 0; i < 8; ++i) {
    bytes.bytes[i] = static_cast<uint8_t>(id.high >> (8 * (7 - i)));
    bytes.bytes[8 + i] = static_cast<uint8_t>(id.low >> (8 * (7 - i)));
  }
  return bytes;
}

Id128 FromC(const cairn_id& bytes) {
  Id128 id;
  for (size_t i = 0; i < 8; ++i) {
    id.high = id.high << 8 | bytes.bytes[i];
    id.low = id.low << 8 | bytes.bytes[8 + i];
  }
  return id;
}

std::vector<BlockId> IdsOf(const cairn_chain& chain) {
  std::vector<BlockId> ids;
  ids.reserve(chain.count);
  for (size_t i = 0; i < chain.count; ++i) ids.push_back(BlockId{FromC(chain.ids[i])});
  return ids;
}

}  // namespace cairn::kv
