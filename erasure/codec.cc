// Checks the calls, picks the sources, and hands whole ranges to a kernel.
#include "erasure/codec.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "erasure/check.h"
#include "erasure/kernel.h"
#include "erasure/matrix.h"

namespace cairn::erasure {

namespace {

// From this shard size on, outputs bypass the caches: a stripe is then large against them, and
// parity is next read by a device. Measured, see README.md.
constexpr size_t kStreamingSizeMin = 64 * 1024;

constexpr Store StoreFor(size_t size) {
  return size >= kStreamingSizeMin ? Store::kStreaming : Store::kCached;
}

bool IsValid(const Shape& shape) {
  if (shape.data_shards < 1 || shape.data_shards > kDataShardsMax) return false;
  switch (shape.code) {
    case CodeId::kPQ: return shape.parity_shards <= 2;
    case CodeId::kCauchy: return shape.parity_shards <= kParityShardsMax;
  }
  return false;  // A value that no enumerator has, as read from a header.
}

template <typename Byte>
size_t PointersOf(std::span<const std::span<Byte>> shards, Byte** pointers, size_t size) {
  for (size_t i = 0; i < shards.size(); ++i) {
    ERASURE_CHECK(shards[i].size() == size);
    pointers[i] = shards[i].data();
  }
  return shards.size();
}

// The k survivors to decode from, by index: data shards come first of themselves.
struct Sources {
  std::array<uint8_t, kDataShardsMax> indices{};
  std::array<const uint8_t*, kDataShardsMax> pointers{};
};

using ByIndex = std::array<const Survivor*, kDataShardsMax + kParityShardsMax>;

ByIndex SortByIndex(std::span<const Survivor> survivors, size_t total, size_t size) {
  ByIndex by_index{};
  for (const Survivor& survivor : survivors) {
    ERASURE_CHECK(survivor.index < total);
    ERASURE_CHECK(by_index[survivor.index] == nullptr);  // Each shard is named once.
    ERASURE_CHECK(survivor.bytes.size() == size);
    by_index[survivor.index] = &survivor;
  }
  return by_index;
}

Sources FirstSources(const ByIndex& by_index, size_t count) {
  Sources sources;
  size_t found = 0;
  for (size_t index = 0; found < count; ++index) {
    if (by_index[index] == nullptr) continue;
    sources.indices[found] = static_cast<uint8_t>(index);
    sources.pointers[found++] = by_index[index]->bytes.data();
  }
  return sources;
}

}  // namespace

void CheckFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

std::optional<Codec> Codec::Create(const Shape& shape) {
  return Create(shape, AvailableKernels().back());
}

std::optional<Codec> Codec::Create(const Shape& shape, Kernel kernel) {
  const auto available = AvailableKernels();
  if (std::find(available.begin(), available.end(), kernel) == available.end()) return {};
  if (!IsValid(shape)) return {};
  return Codec(shape, TableOf(kernel));
}

Codec::Codec(const Shape& shape, const KernelTable& kernel) : shape_(shape), kernel_(&kernel) {
  for (size_t row = 0; row < parity_shards(); ++row) {
    for (size_t column = 0; column < data_shards(); ++column) {
      encode_factors_[row * data_shards() + column] = Coefficient(shape.code, row, column);
    }
  }
}

void Codec::Encode(std::span<const std::span<const uint8_t>> data,
                   std::span<const std::span<uint8_t>> parity) const {
  ERASURE_CHECK(data.size() == data_shards());
  ERASURE_CHECK(parity.size() == parity_shards());
  const size_t size = data[0].size();
  std::array<const uint8_t*, kDataShardsMax> sources;
  std::array<uint8_t*, kParityShardsMax> outputs;
  PointersOf(data, sources.data(), size);
  PointersOf(parity, outputs.data(), size);
  EncodeRange(sources.data(), outputs.data(), size);
}

void Codec::EncodeRange(const uint8_t* const* data, uint8_t* const* parity, size_t size) const {
  if (parity_shards() == 0 || size == 0) return;
  const Work work{.sources = data,
                  .source_count = data_shards(),
                  .outputs = parity,
                  .output_count = parity_shards(),
                  .begin = 0,
                  .end = size,
                  .store = StoreFor(size)};
  if (parity_shards() == 1) {
    kernel_->sum(work);
  } else if (shape_.code == CodeId::kPQ) {
    kernel_->sum_and_powers(work);
  } else {
    kernel_->dot(work, encode_factors_.data());
  }
}

bool Codec::Reconstruct(std::span<const Survivor> survivors, std::span<const Wanted> wanted) const {
  if (survivors.size() < data_shards()) return false;
  const size_t size = survivors[0].bytes.size();
  const ByIndex by_index = SortByIndex(survivors, total_shards(), size);
  std::array<uint8_t, kParityShardsMax> indices{};
  std::array<uint8_t*, kParityShardsMax> outputs{};
  ERASURE_CHECK(wanted.size() <= parity_shards());
  for (size_t i = 0; i < wanted.size(); ++i) {
    ERASURE_CHECK(wanted[i].index < total_shards());
    ERASURE_CHECK(by_index[wanted[i].index] == nullptr);  // A survivor needs no rebuilding.
    ERASURE_CHECK(wanted[i].bytes.size() == size);
    const auto known = indices.begin() + static_cast<std::ptrdiff_t>(i);
    ERASURE_CHECK(std::find(indices.begin(), known, wanted[i].index) == known);
    indices[i] = wanted[i].index;
    outputs[i] = wanted[i].bytes.data();
  }
  if (wanted.empty() || size == 0) return true;

  const Sources sources = FirstSources(by_index, data_shards());
  Factors factors;
  PlanDecode(shape_, std::span(sources.indices).first(data_shards()),
             std::span(indices).first(wanted.size()), factors);
  const Work work{.sources = sources.pointers.data(),
                  .source_count = data_shards(),
                  .outputs = outputs.data(),
                  .output_count = wanted.size(),
                  .begin = 0,
                  .end = size,
                  .store = StoreFor(size)};
  const auto last = factors.begin() + static_cast<std::ptrdiff_t>(data_shards());
  const bool plain_sum =
      wanted.size() == 1 && std::all_of(factors.begin(), last, [](uint8_t f) { return f == 1; });
  if (plain_sum) {
    kernel_->sum(work);
  } else {
    kernel_->dot(work, factors.data());
  }
  return true;
}

bool Codec::Verify(std::span<const std::span<const uint8_t>> data,
                   std::span<const std::span<const uint8_t>> parity) const {
  ERASURE_CHECK(data.size() == data_shards());
  ERASURE_CHECK(parity.size() == parity_shards());
  const size_t size = data[0].size();
  constexpr size_t kPiece = 4096;  // Eight pieces of scratch fit a stack and the nearest cache.
  alignas(64) uint8_t scratch[kParityShardsMax][kPiece];
  std::array<const uint8_t*, kDataShardsMax> sources;
  std::array<const uint8_t*, kParityShardsMax> expected;
  std::array<uint8_t*, kParityShardsMax> outputs;
  PointersOf(data, sources.data(), size);
  PointersOf(parity, expected.data(), size);
  for (size_t row = 0; row < parity_shards(); ++row) outputs[row] = scratch[row];
  for (size_t at = 0; at < size; at += kPiece) {
    const size_t piece = std::min(kPiece, size - at);
    EncodeRange(sources.data(), outputs.data(), piece);
    for (size_t row = 0; row < parity_shards(); ++row) {
      if (std::memcmp(scratch[row], expected[row] + at, piece) != 0) return false;
    }
    for (size_t i = 0; i < data_shards(); ++i) sources[i] += piece;
  }
  return true;
}

}  // namespace cairn::erasure
