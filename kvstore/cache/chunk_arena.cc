// One reservation; chunks are handed out in order first, then those that came back.
#include "kvstore/cache/chunk_arena.h"

#include <algorithm>

#include "kvstore/base/checksum.h"

namespace cairn::kv {

ChunkArena::Chunks ChunkArena::Take(uint64_t size) {
  const uint64_t count = DivCeil(size, kChunkSize);
  KV_CHECK(count <= chunk_count_ - used_chunks_);
  if (memory_ == nullptr) {
    memory_.reset(static_cast<uint8_t*>(std::aligned_alloc(kSectorSize, bytes_max())));
    KV_CHECK(memory_ != nullptr);
  }
  Chunks chunks;
  chunks.reserve(count);
  while (chunks.size() < count) {
    if (returned_.empty()) {
      chunks.push_back(next_unused_++);
    } else {
      chunks.push_back(returned_.back());
      returned_.pop_back();
    }
  }
  used_chunks_ += count;
  return chunks;
}

void ChunkArena::Return(Chunks& chunks) {
  used_chunks_ -= chunks.size();
  returned_.insert(returned_.end(), chunks.begin(), chunks.end());
  chunks.clear();
}

void ChunkArena::Write(const Chunks& chunks, uint64_t offset, ByteSpan from) {
  KV_CHECK(offset + from.size() <= chunks.size() * kChunkSize);
  for (size_t done = 0; done < from.size();) {
    const uint64_t at = offset + done;
    const uint64_t inside = at % kChunkSize;
    const size_t size = std::min<size_t>(kChunkSize - inside, from.size() - done);
    std::memcpy(At(chunks[at / kChunkSize]) + inside, from.data() + done, size);
    done += size;
  }
}

void ChunkArena::Read(const Chunks& chunks, uint64_t offset, MutableByteSpan into) const {
  KV_CHECK(offset + into.size() <= chunks.size() * kChunkSize);
  for (size_t done = 0; done < into.size();) {
    const uint64_t at = offset + done;
    const uint64_t inside = at % kChunkSize;
    const size_t size = std::min<size_t>(kChunkSize - inside, into.size() - done);
    std::memcpy(into.data() + done, At(chunks[at / kChunkSize]) + inside, size);
    done += size;
  }
}

std::vector<ByteSpan> ChunkArena::Parts(const Chunks& chunks, uint64_t size) const {
  KV_CHECK(size <= chunks.size() * kChunkSize);
  std::vector<ByteSpan> parts;
  for (uint64_t done = 0; done < size; done += kChunkSize) {
    const ByteSpan part(At(chunks[done / kChunkSize]), std::min(kChunkSize, size - done));
    if (!parts.empty() && parts.back().data() + parts.back().size() == part.data()) {
      parts.back() = {parts.back().data(), parts.back().size() + part.size()};
    } else {
      parts.push_back(part);
    }
  }
  return parts;
}

uint64_t ChunkArena::ChecksumOf(const Chunks& chunks, uint64_t size) const {
  ChecksumStream sum;
  for (const ByteSpan part : Parts(chunks, size)) sum.Add(part);
  return sum.Digest();
}

}  // namespace cairn::kv
