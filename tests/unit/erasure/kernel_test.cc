// Every kernel this processor has writes the bytes of the portable one, whatever length and place.
#include "erasure/kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "erasure/codec.h"
#include "kvstore/base/random.h"
#include "tests/unit/erasure/slow_field.h"
#include "tests/unit/erasure/stripe.h"

namespace cairn::erasure {
namespace {

enum class Operation : uint8_t { kSum, kSumAndPowers, kDot };

// Random sources at odd addresses, and outputs that all lie `misalignment` past a 64-byte boundary
// (so that streaming stores are possible) or, with kRagged, each elsewhere.
class Bench {
 public:
  enum class Outputs : uint8_t { kAlike, kRagged };

  Bench(size_t source_count, size_t output_count, size_t size, size_t misalignment, Outputs kind)
      : size_(size) {
    kv::Random random(size * 64 + misalignment);
    for (size_t i = 0; i < source_count; ++i) {
      sources_.emplace_back(size, i * 13 + 1);
      sources_.back().Fill(random);
      source_pointers_.push_back(sources_.back().bytes().data());
    }
    for (size_t i = 0; i < output_count; ++i) {
      outputs_.emplace_back(size, misalignment + (kind == Outputs::kRagged ? 3 * i : 0));
      output_pointers_.push_back(outputs_.back().bytes().data());
    }
    factors_.resize(source_count * output_count);
    random.Fill(factors_);
  }

  // The outputs' bytes [begin, end), one after another; nothing else may have changed.
  std::vector<uint8_t> Run(Kernel kernel, Operation operation, Store store, size_t begin,
                           size_t end) {
    for (GuardedShard& output : outputs_) output.Clear();
    const Work work{.sources = source_pointers_.data(),
                    .source_count = sources_.size(),
                    .outputs = output_pointers_.data(),
                    .output_count = outputs_.size(),
                    .begin = begin,
                    .end = end,
                    .store = store};
    const KernelTable& table = TableOf(kernel);
    if (operation == Operation::kSum) table.sum(work);
    if (operation == Operation::kSumAndPowers) table.sum_and_powers(work);
    if (operation == Operation::kDot) table.dot(work, factors_.data());
    std::vector<uint8_t> written;
    for (const GuardedShard& output : outputs_) {
      EXPECT_TRUE(output.FenceHolds());
      const std::span<const uint8_t> bytes = output.bytes();
      EXPECT_TRUE(IsCleared(bytes.first(begin)) && IsCleared(bytes.subspan(end)));
      written.insert(written.end(), bytes.begin() + static_cast<ptrdiff_t>(begin),
                     bytes.begin() + static_cast<ptrdiff_t>(end));
    }
    return written;
  }
  std::vector<uint8_t> Run(Kernel kernel, Operation operation, Store store) {
    return Run(kernel, operation, store, 0, size_);
  }

  uint8_t source(size_t index, size_t at) const { return sources_[index].bytes()[at]; }
  uint8_t factor(size_t row, size_t index) const { return factors_[row * sources_.size() + index]; }

 private:
  static bool IsCleared(std::span<const uint8_t> bytes) {
    return std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 0xEE; });
  }

  const size_t size_;
  std::vector<GuardedShard> sources_;
  std::vector<GuardedShard> outputs_;
  std::vector<const uint8_t*> source_pointers_;
  std::vector<uint8_t*> output_pointers_;
  std::vector<uint8_t> factors_;
};

struct Case {
  Operation operation;
  size_t outputs;
};

std::vector<Case> AllCases() {
  std::vector<Case> cases = {{Operation::kSum, 1}, {Operation::kSumAndPowers, 2}};
  for (size_t rows = 1; rows <= kParityShardsMax; ++rows) cases.push_back({Operation::kDot, rows});
  return cases;
}

class EveryKernel : public ::testing::TestWithParam<Kernel> {};

TEST_P(EveryKernel, EqualsThePortableOneAtEveryLength) {
  for (const Case& c : AllCases()) {
    for (size_t size = 0; size <= 300; ++size) {
      Bench bench(5, c.outputs, size, size % 64, Bench::Outputs::kRagged);
      const auto expected = bench.Run(Kernel::kPortable, c.operation, Store::kCached);
      ASSERT_EQ(bench.Run(GetParam(), c.operation, Store::kCached), expected) << size;
    }
  }
}

TEST_P(EveryKernel, StreamsTheSameBytesAtEveryAlignment) {
  for (const Case& c : AllCases()) {
    for (size_t misalignment = 0; misalignment < 64; ++misalignment) {
      for (const size_t size : {size_t{255}, size_t{640}, 700 + misalignment}) {
        for (const auto kind : {Bench::Outputs::kAlike, Bench::Outputs::kRagged}) {
          Bench bench(3, c.outputs, size, misalignment, kind);
          const auto expected = bench.Run(Kernel::kPortable, c.operation, Store::kCached);
          ASSERT_EQ(bench.Run(GetParam(), c.operation, Store::kStreaming), expected)
              << size << " at " << misalignment;
        }
      }
    }
  }
}

TEST_P(EveryKernel, TakesAnyNumberOfSources) {
  for (const Case& c : AllCases()) {
    for (size_t sources = 1; sources <= kDataShardsMax; ++sources) {
      Bench bench(sources, c.outputs, 1000, 1, Bench::Outputs::kAlike);
      const auto expected = bench.Run(Kernel::kPortable, c.operation, Store::kCached);
      ASSERT_EQ(bench.Run(GetParam(), c.operation, Store::kCached), expected) << sources;
      ASSERT_EQ(bench.Run(GetParam(), c.operation, Store::kStreaming), expected) << sources;
    }
  }
}

TEST_P(EveryKernel, StaysInItsRange) {
  for (const Case& c : AllCases()) {
    for (size_t begin = 0; begin < 70; begin += 3) {
      Bench bench(4, c.outputs, 900, 5, Bench::Outputs::kAlike);
      const auto expected = bench.Run(Kernel::kPortable, c.operation, Store::kCached, begin, 850);
      ASSERT_EQ(bench.Run(GetParam(), c.operation, Store::kStreaming, begin, 850), expected);
    }
  }
}

TEST_P(EveryKernel, MultipliesEveryByteByEveryFactor) {
  std::vector<uint8_t> source(256);
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<uint8_t>(i);
  std::vector<uint8_t> output(256);
  const uint8_t* const sources = source.data();
  uint8_t* const outputs = output.data();
  const Work work{.sources = &sources, .source_count = 1, .outputs = &outputs, .output_count = 1,
                  .begin = 0, .end = 256, .store = Store::kCached};
  for (unsigned factor = 0; factor < 256; ++factor) {
    const auto byte = static_cast<uint8_t>(factor);
    TableOf(GetParam()).dot(work, &byte);
    for (size_t i = 0; i < 256; ++i) {
      ASSERT_EQ(output[i], SlowMultiply(byte, source[i])) << factor << " * " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Available, EveryKernel,
                         ::testing::ValuesIn(AvailableKernels().begin(), AvailableKernels().end()),
                         [](const auto& parameter) {
                           std::string name(NameOf(parameter.param));
                           std::replace(name.begin(), name.end(), '+', '_');
                           return name;
                         });

TEST(PortableKernel, EqualsTheDefinition) {
  for (size_t size = 0; size < 40; ++size) {
    Bench bench(6, 3, size, 1, Bench::Outputs::kAlike);
    const auto dot = bench.Run(Kernel::kPortable, Operation::kDot, Store::kCached);
    Bench two(6, 2, size, 1, Bench::Outputs::kAlike);
    const auto powers = two.Run(Kernel::kPortable, Operation::kSumAndPowers, Store::kCached);
    for (size_t at = 0; at < size; ++at) {
      uint8_t p = 0;
      uint8_t q = 0;
      uint8_t rows[3] = {};
      for (size_t i = 0; i < 6; ++i) {
        p ^= two.source(i, at);
        q ^= SlowMultiply(static_cast<uint8_t>(1u << i), two.source(i, at));
        for (size_t r = 0; r < 3; ++r) {
          rows[r] ^= SlowMultiply(bench.factor(r, i), bench.source(i, at));
        }
      }
      ASSERT_EQ(powers[at], p);
      ASSERT_EQ(powers[size + at], q);
      for (size_t r = 0; r < 3; ++r) ASSERT_EQ(dot[r * size + at], rows[r]);
    }
  }
}

TEST(Kernels, TheLastOneIsTheDefaultAndForcingAnAbsentOneFails) {
  const Shape shape{.data_shards = 2, .parity_shards = 1, .code = CodeId::kPQ};
  EXPECT_EQ(AvailableKernels().front(), Kernel::kPortable);
  for (const Kernel kernel : AvailableKernels()) EXPECT_TRUE(Codec::Create(shape, kernel));
#if defined(__x86_64__)
  EXPECT_FALSE(Codec::Create(shape, Kernel::kNeon));
#else
  EXPECT_FALSE(Codec::Create(shape, Kernel::kGfni));
#endif
}

}  // namespace
}  // namespace cairn::erasure
