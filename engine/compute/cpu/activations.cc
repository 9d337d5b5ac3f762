// Where each row of each form lies.
#include "engine/compute/cpu/activations.h"

#include "kvstore/base/units.h"

namespace cairn::engine {

FloatRows::FloatRows(uint32_t rows, uint32_t width)
    : stride_(kv::AlignUp(width, 16) + 16), memory_(rows * stride_ * sizeof(float)) {}

FormSet FormSet::For(std::initializer_list<const PackedMatrix*> matrices) {
  FormSet forms;
  for (const PackedMatrix* matrix : matrices) {
    if (matrix->form() == ActivationForm::kQuantised32) forms.quantised32 = true;
    if (matrix->form() == ActivationForm::kQuantised256) forms.quantised256 = true;
  }
  return forms;
}

QuantisedForms::Form::Form(uint32_t rows, uint32_t columns_max, uint32_t columns_per_scale,
                           uint32_t columns_per_sum)
    : codes(size_t{rows} * columns_max),
      scales(size_t{rows} * (columns_max / columns_per_scale) * sizeof(float)),
      sums(size_t{rows} * (columns_max / columns_per_sum) * sizeof(int32_t)),
      scaled_sums(sums.size()) {}

QuantisedRows QuantisedForms::Form::at(uint32_t row, uint32_t columns, uint32_t columns_per_scale,
                                       uint32_t columns_per_sum) {
  const size_t index = row;
  return {.codes = reinterpret_cast<int8_t*>(codes.data()) + index * columns,
          .scales = reinterpret_cast<float*>(scales.data()) + index * (columns / columns_per_scale),
          .sums = reinterpret_cast<int32_t*>(sums.data()) + index * (columns / columns_per_sum),
          .scaled_sums =
              reinterpret_cast<float*>(scaled_sums.data()) + index * (columns / columns_per_sum)};
}

QuantisedForms::QuantisedForms(uint32_t rows, uint32_t columns_max)
    : form32_(rows, columns_max, 32, 32), form256_(rows, columns_max, 256, 16) {}

void QuantisedForms::Quantise(const CpuKernelTable& kernels, FormSet forms, const FloatRows& source,
                              uint32_t columns, uint32_t row) {
  if (forms.quantised32) {
    kernels.quantise32(source.row(row), columns, form32_.at(row, columns, 32, 32));
  }
  if (forms.quantised256) {
    kernels.quantise256(source.row(row), columns, form256_.at(row, columns, 256, 16));
  }
}

MatMulArgs QuantisedForms::ArgumentsFor(const PackedMatrix& matrix, const FloatRows& source,
                                        uint32_t tokens, FloatRows& output) {
  MatMulArgs args;
  args.tokens = tokens;
  args.floats = source.data();
  args.float_stride = source.stride();
  const bool is256 = matrix.form() == ActivationForm::kQuantised256;
  args.quantised =
      is256 ? form256_.at(0, matrix.columns(), 256, 16) : form32_.at(0, matrix.columns(), 32, 32);
  args.output = output.data();
  args.output_stride = output.stride();
  return args;
}

}  // namespace cairn::engine
