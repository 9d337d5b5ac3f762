// The three byte loops that all coding is made of, as a table of function pointers per processor.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cairn::erasure {

// kStreaming writes past the caches: right when the outputs would only push out what is needed.
enum class Store : uint8_t { kCached, kStreaming };

// What a kernel works on: bytes [begin, end) of every source and of every output. Any alignment;
// outputs overlap neither each other nor a source.
struct Work {
  const uint8_t* const* sources = nullptr;
  size_t source_count = 0;  // At least 1.
  uint8_t* const* outputs = nullptr;
  size_t output_count = 0;
  size_t begin = 0;
  size_t end = 0;
  Store store = Store::kCached;
};

enum class Kernel : uint8_t;  // erasure/codec.h

struct KernelTable {
  // outputs[0] = sum of the sources. One output.
  void (*sum)(const Work& work);
  // outputs[0] = sum of the sources; outputs[1] = sum of 2^i * sources[i]. Two outputs.
  void (*sum_and_powers)(const Work& work);
  // outputs[r] = sum of factors[r * source_count + i] * sources[i]. 1 to 8 outputs.
  void (*dot)(const Work& work, const uint8_t* factors);
};

// `kernel` is one of AvailableKernels().
const KernelTable& TableOf(Kernel kernel);

extern const KernelTable kPortableKernel;
#if defined(__x86_64__)
extern const KernelTable kAvx2Kernel;
extern const KernelTable kGfniKernel;
#elif defined(__aarch64__)
extern const KernelTable kNeonKernel;
#endif

}  // namespace cairn::erasure
