// How a vector kernel walks over its bytes: ragged head, whole blocks, ragged tail.
#pragma once

#include <cstddef>
#include <cstdint>

#include "erasure/kernel.h"

namespace cairn::erasure {

// `Op` has kWidth and kBlock (bytes), Block<Store>(at) for a whole block, Vector(at) for one whole
// vector, Edge(at, count) for fewer bytes than that, and Fence(). Keep Op in an unnamed namespace,
// and everything here a template over it: code compiled for one processor must not be merged with
// another file's.

// Bytes from `at` to the next vector boundary in memory, if that is the same for all outputs;
// kWidth if it is not, and then no aligned store can serve them all.
template <typename Op>
size_t BytesToBoundary(const Work& work, size_t at) {
  const uintptr_t first = reinterpret_cast<uintptr_t>(work.outputs[0]) + at;
  for (size_t i = 1; i < work.output_count; ++i) {
    const uintptr_t other = reinterpret_cast<uintptr_t>(work.outputs[i]) + at;
    if ((first ^ other) % Op::kWidth != 0) return Op::kWidth;
  }
  return (Op::kWidth - first % Op::kWidth) % Op::kWidth;
}

template <typename Op>
void Walk(const Work& work, const Op& op) {
  size_t at = work.begin;
  if (work.store == Store::kStreaming) {
    const size_t head = BytesToBoundary<Op>(work, at);
    if (head < Op::kWidth && work.end - at >= head + Op::kBlock) {
      if (head > 0) op.Edge(at, head);
      at += head;
      for (; work.end - at >= Op::kBlock; at += Op::kBlock) {
        op.template Block<Store::kStreaming>(at);
      }
      Op::Fence();
    }
  }
  for (; work.end - at >= Op::kBlock; at += Op::kBlock) op.template Block<Store::kCached>(at);
  for (; work.end - at >= Op::kWidth; at += Op::kWidth) op.Vector(at);
  if (at < work.end) op.Edge(at, work.end - at);
}

}  // namespace cairn::erasure
