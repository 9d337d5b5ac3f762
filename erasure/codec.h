// Reed-Solomon over GF(2^8): the parity of a stripe, and any lost shards from k survivors.
//
//   auto codec = Codec::Create({.data_shards = 10, .parity_shards = 2, .code = CodeId::kPQ});
//   codec->Encode(data, parity);                         // 10 spans in, 2 spans filled.
//   bool rebuilt = codec->Reconstruct(survivors, wanted);  // Any 10 of 12 in, any lost ones out.
//
// Shards are numbered 0..k-1 (data) and k..k+m-1 (parity). The data shards are the data themselves.
//
// Ranges: byte i of a shard depends on byte i of the others only. To rebuild bytes [a, b) of a
// shard, pass bytes [a, b) of the survivors: it is the same call on subspans.
//
// Shortened stripes: a stripe of k' < k data shards is the stripe of the codec with k' data shards.
// Its parity equals that of the codec with k, the absent shards counting as zero; only the numbers
// of its parity shards differ (they start at k').
//
// Spans of one call have one length, any length and any alignment; what is written overlaps nothing
// else. Calls that break this, or name a shard twice or out of range, end the process.
// A Codec is a small value without allocations, cheap to make, immutable, usable from any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace cairn::erasure {

inline constexpr size_t kDataShardsMax = 32;
inline constexpr size_t kParityShardsMax = 8;

// Which matrix makes the parity. Stored in stripe headers: values never change. Both give a stripe
// that survives the loss of any m shards; parity shard 0 is the plain sum (XOR) in both.
enum class CodeId : uint8_t {
  kPQ = 1,      // m <= 2. RAID-6 P and Q: factors 1 and 2^i. Encodes at memory speed.
  kCauchy = 2,  // m <= 8. A Cauchy matrix with its first row scaled to ones (erasure/matrix.h).
};

// The code to choose for new stripes of m parity shards.
constexpr CodeId PreferredCode(size_t parity_shards) {
  return parity_shards <= 2 ? CodeId::kPQ : CodeId::kCauchy;
}

struct Shape {
  uint8_t data_shards = 0;    // k: 1 to 32
  uint8_t parity_shards = 0;  // m: 0 to 8
  CodeId code = CodeId::kPQ;
  bool operator==(const Shape&) const = default;
};

// The byte loops a Codec runs on. All give the same bytes.
enum class Kernel : uint8_t { kPortable, kNeon, kAvx2, kGfni };
std::string_view NameOf(Kernel kernel);
std::span<const Kernel> AvailableKernels();  // Of this processor and build; the fastest is last.

struct Survivor {
  uint8_t index = 0;
  std::span<const uint8_t> bytes;
};
struct Wanted {
  uint8_t index = 0;
  std::span<uint8_t> bytes;
};

struct KernelTable;

class Codec {
 public:
  // Nothing if no such code exists (k, m or code out of range, kPQ with m > 2): check what was read
  // from a header here. The second form takes a kernel by force; nothing if it is not available.
  static std::optional<Codec> Create(const Shape& shape);
  static std::optional<Codec> Create(const Shape& shape, Kernel kernel);

  // Fills all m parity shards from all k data shards.
  void Encode(std::span<const std::span<const uint8_t>> data,
              std::span<const std::span<uint8_t>> parity) const;

  // Fills every wanted shard, data or parity, from k of the survivors (more may be given; data
  // shards are used before parity shards, low before high). No shard is both survivor and wanted.
  // False, and nothing written, if there are fewer than k survivors.
  [[nodiscard]] bool Reconstruct(std::span<const Survivor> survivors,
                                 std::span<const Wanted> wanted) const;

  // Whether the parity shards are those of the data shards.
  [[nodiscard]] bool Verify(std::span<const std::span<const uint8_t>> data,
                            std::span<const std::span<const uint8_t>> parity) const;

  const Shape& shape() const { return shape_; }
  size_t data_shards() const { return shape_.data_shards; }
  size_t parity_shards() const { return shape_.parity_shards; }
  size_t total_shards() const { return data_shards() + parity_shards(); }

 private:
  Codec(const Shape& shape, const KernelTable& kernel);
  void EncodeRange(const uint8_t* const* data, uint8_t* const* parity, size_t size) const;

  Shape shape_;
  const KernelTable* kernel_;
  std::array<uint8_t, kParityShardsMax * kDataShardsMax> encode_factors_{};
};

}  // namespace cairn::erasure
