// XXH3-64 through libxxhash, inlined for this machine's vector width.
#define XXH_INLINE_ALL
#include "kvstore/base/checksum.h"

#include <xxhash.h>

namespace cairn::kv {

uint64_t Checksum(ByteSpan bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

struct ChecksumStream::State {
  XXH3_state_t* xxh;
};

ChecksumStream::ChecksumStream() : state_(new State{XXH3_createState()}) {
  KV_CHECK(state_->xxh != nullptr);
  XXH3_64bits_reset(state_->xxh);
}
ChecksumStream::~ChecksumStream() {
  XXH3_freeState(state_->xxh);
  delete state_;
}
void ChecksumStream::Add(ByteSpan piece) {
  XXH3_64bits_update(state_->xxh, piece.data(), piece.size());
}
uint64_t ChecksumStream::Digest() const { return XXH3_64bits_digest(state_->xxh); }

}  // namespace cairn::kv
