// Compares the NEON kernel with the portable one and exits 0 if they agree.
// Without GoogleTest, so that a cross compiler alone can build it and an emulator run it.
#include <cstdio>
#include <vector>

#include "erasure/codec.h"
#include "erasure/kernel.h"

namespace cairn::erasure {
namespace {

// Any varied bytes will do: both kernels get the same ones.
uint8_t ByteAt(size_t i) { return static_cast<uint8_t>((i * 2654435761u) >> 13); }

struct Buffers {
  Buffers(size_t sources, size_t outputs, size_t size)
      : source_bytes(sources * size), output_bytes(outputs * (size + 1)) {
    for (size_t i = 0; i < source_bytes.size(); ++i) source_bytes[i] = ByteAt(i);
    for (size_t i = 0; i < sources; ++i) source_pointers.push_back(source_bytes.data() + i * size);
    for (size_t i = 0; i < outputs; ++i) {  // One byte apart from each other: all unaligned.
      output_pointers.push_back(output_bytes.data() + i * (size + 1));
    }
  }
  std::vector<uint8_t> source_bytes;
  std::vector<uint8_t> output_bytes;
  std::vector<const uint8_t*> source_pointers;
  std::vector<uint8_t*> output_pointers;
};

std::vector<uint8_t> Run(Kernel kernel, size_t sources, size_t outputs, size_t size, bool dot) {
  Buffers buffers(sources, outputs, size);
  const Work work{.sources = buffers.source_pointers.data(),
                  .source_count = sources,
                  .outputs = buffers.output_pointers.data(),
                  .output_count = outputs,
                  .begin = 0,
                  .end = size,
                  .store = Store::kStreaming};
  std::vector<uint8_t> factors;
  for (size_t i = 0; i < sources * outputs; ++i) factors.push_back(ByteAt(i + 77));
  const KernelTable& table = TableOf(kernel);
  if (dot) table.dot(work, factors.data());
  if (!dot && outputs == 1) table.sum(work);
  if (!dot && outputs == 2) table.sum_and_powers(work);
  return buffers.output_bytes;
}

bool Agree(size_t sources, size_t outputs, size_t size, bool dot) {
  if (Run(Kernel::kNeon, sources, outputs, size, dot) ==
      Run(Kernel::kPortable, sources, outputs, size, dot)) {
    return true;
  }
  std::printf("neon differs: %zu sources, %zu outputs, %zu bytes, %s\n", sources, outputs, size,
              dot ? "dot" : "sum");
  return false;
}

bool AllAgree() {
  bool agree = AvailableKernels().back() == Kernel::kNeon;
  for (size_t sources = 1; sources <= kDataShardsMax; sources += sources < 4 ? 1 : 7) {
    for (size_t size = 0; size <= 150; ++size) {
      for (size_t outputs = 1; outputs <= kParityShardsMax; ++outputs) {
        agree = Agree(sources, outputs, size, true) && agree;
        if (outputs <= 2) agree = Agree(sources, outputs, size, false) && agree;
      }
    }
  }
  return agree;
}

}  // namespace
}  // namespace cairn::erasure

int main() { return cairn::erasure::AllAgree() ? 0 : 1; }
