// Working memory of a step: rows of floats, one per token, and their quantised forms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "engine/compute/cpu/kernels.h"
#include "engine/compute/cpu/packed_matrix.h"
#include "kvstore/base/bytes.h"

namespace cairn::engine {

// Rows are padded with zeros, which the kernels keep: to 16, and 16 more, so that a register may be
// loaded from any value on, and rows of a power of two do not share cache sets.
class FloatRows {
 public:
  FloatRows(uint32_t rows, uint32_t width);

  float* row(uint32_t index) { return data() + index * stride_; }
  const float* row(uint32_t index) const { return data() + index * stride_; }
  float* data() { return reinterpret_cast<float*>(memory_.data()); }
  const float* data() const { return reinterpret_cast<const float*>(memory_.data()); }
  size_t stride() const { return stride_; }

 private:
  size_t stride_;
  kv::Bytes memory_;
};

// Which forms the matrices that read the same activations want.
struct FormSet {
  bool quantised32 = false;
  bool quantised256 = false;

  static FormSet For(std::initializer_list<const PackedMatrix*> matrices);
};

// The quantised forms of rows of up to `columns_max` values. One set of rows at a time.
class QuantisedForms {
 public:
  QuantisedForms(uint32_t rows, uint32_t columns_max);

  // Quantises one row; different rows may be done by different threads.
  void Quantise(const CpuKernelTable& kernels, FormSet forms, const FloatRows& source,
                uint32_t columns, uint32_t row);

  // What `matrix` multiplies with: the rows last quantised, or the floats themselves.
  MatMulArgs ArgumentsFor(const PackedMatrix& matrix, const FloatRows& source, uint32_t tokens,
                          FloatRows& output);

 private:
  struct Form {
    kv::Bytes codes, scales, sums, scaled_sums;

    Form(uint32_t rows, uint32_t columns_max, uint32_t columns_per_scale, uint32_t columns_per_sum);
    QuantisedRows at(uint32_t row, uint32_t columns, uint32_t columns_per_scale,
                     uint32_t columns_per_sum);
  };

  Form form32_;
  Form form256_;
};

}  // namespace cairn::engine
