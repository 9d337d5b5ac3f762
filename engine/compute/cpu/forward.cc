// Runs the layers: few loops over rows or panels each, shared out among the threads.
#include "engine/compute/cpu/forward.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/compute/cpu/attention_kernels.h"
#include "engine/compute/cpu/kv_writer.h"
#include "kvstore/base/check.h"
#include "kvstore/base/units.h"

namespace cairn::engine {
namespace {

constexpr uint32_t kRowsPerPiece = 8;
constexpr uint32_t kLogitsRows = 8;  // Computed at a time.

// Panels that one thread takes at a time: enough work to pay for claiming it.
uint32_t PanelsPerPiece(uint32_t rows) { return std::max(1u, 8u / rows); }

}  // namespace

Forward::Forward(const ModelShape& shape, const PackedModel& model, const PageLayout& layout,
                 const CpuKernelTable& kernels, Limits limits)
    : shape_(shape),
      model_(model),
      layout_(layout),
      kernels_(kernels),
      rope_(
          shape,
          std::span(model.rope_factors).first(model.rope_factors.empty() ? 0 : shape.rope_dim / 2)),
      tokens_per_piece_(kAttentionRowsMax / (shape.heads / shape.kv_heads)),
      pool_(limits.threads),
      hidden_(limits.rows_max, shape.hidden),
      delta_(limits.rows_max, shape.hidden),
      normed_(limits.rows_max, shape.hidden),
      queries_(limits.rows_max, shape.query_width()),
      keys_(limits.rows_max, shape.kv_width()),
      values_(limits.rows_max, shape.kv_width()),
      attended_(limits.rows_max, shape.query_width()),
      gate_(limits.rows_max, shape.ffn),
      up_(limits.rows_max, shape.ffn),
      angles_(limits.rows_max, shape.rope_dim),
      scratch_(limits.threads, static_cast<uint32_t>(AttentionState::Floats(shape.head_dim))),
      logits_(kLogitsRows, shape.vocab),
      forms_(limits.rows_max, std::max({shape.hidden, shape.query_width(), shape.ffn})) {}

void Forward::Run(const StepPlan& plan, std::span<float> logits) {
  KV_CHECK(logits.size() == plan.logits_rows.size() * shape_.vocab);
  Embed(plan);
  for (uint32_t layer = 0; layer < shape_.layers; ++layer) RunLayer(plan, layer);
  WriteLogits(plan, logits);
}

template <typename Body>
void Forward::ForRows(uint32_t rows, const Body& body) {
  const uint32_t pieces = static_cast<uint32_t>(kv::DivCeil(rows, kRowsPerPiece));
  pool_.Run(pieces, [&](uint32_t piece, uint32_t) {
    const uint32_t end = std::min(rows, (piece + 1) * kRowsPerPiece);
    for (uint32_t row = piece * kRowsPerPiece; row < end; ++row) body(row);
  });
}

void Forward::RunLayer(const StepPlan& plan, uint32_t layer) {
  const PackedLayer& weights = model_.layers[layer];
  const uint32_t rows = plan.row_count();
  NormAndQuantise(rows, weights.attention_norm,
                  FormSet::For({&weights.query, &weights.key, &weights.value}), layer > 0);
  Multiply({{&weights.query, &queries_}, {&weights.key, &keys_}, {&weights.value, &values_}},
           normed_, rows);
  TurnAndStore(plan, layer);
  Attend(plan, layer);
  const FormSet forms = FormSet::For({&weights.attention_output});
  ForRows(rows, [&](uint32_t row) {
    forms_.Quantise(kernels_, forms, attended_, shape_.query_width(), row);
  });
  Multiply({{&weights.attention_output, &delta_}}, attended_, rows);
  NormAndQuantise(rows, weights.ffn_norm, FormSet::For({&weights.gate, &weights.up}), true);
  FeedForward(weights, rows);
}

void Forward::Embed(const StepPlan& plan) {
  ForRows(plan.row_count(), [&](uint32_t row) {
    ReadRow(model_.token_embedding, plan.rows[row].token, hidden_.row(row));
    rope_.Angles(plan.rows[row].position, angles_.row(row));
  });
}

void Forward::NormAndQuantise(uint32_t rows, const PaddedFloats& weight, FormSet forms,
                              bool add_delta) {
  const uint32_t width = shape_.hidden;
  ForRows(rows, [&](uint32_t row) {
    if (add_delta) kernels_.add(hidden_.row(row), delta_.row(row), width);
    kernels_.rms_norm(hidden_.row(row), weight.data(), width, shape_.norm_epsilon,
                      normed_.row(row));
    forms_.Quantise(kernels_, forms, normed_, width, row);
  });
}

void Forward::Multiply(std::initializer_list<Product> products, const FloatRows& source,
                       uint32_t rows) {
  const uint32_t step = PanelsPerPiece(rows);
  uint32_t pieces = 0;
  for (const Product& product : products) {
    pieces += static_cast<uint32_t>(kv::DivCeil(product.matrix->panel_count(), step));
  }
  pool_.Run(pieces, [&](uint32_t piece, uint32_t) {
    const Product* product = products.begin();
    uint32_t panel = piece * step;
    while (panel >= kv::AlignUp(product->matrix->panel_count(), step)) {
      panel -= static_cast<uint32_t>(kv::AlignUp(product->matrix->panel_count(), step));
      ++product;
    }
    const MatMulArgs args = forms_.ArgumentsFor(*product->matrix, source, rows, *product->output);
    const uint32_t end = std::min(product->matrix->panel_count(), panel + step);
    for (; panel < end; ++panel) product->matrix->MultiplyPanel(kernels_, panel, args);
  });
}

void Forward::TurnAndStore(const StepPlan& plan, uint32_t layer) {
  const PackedLayer& weights = model_.layers[layer];
  const auto add_bias = [&](FloatRows& rows, uint32_t row, const PaddedFloats& bias,
                            uint32_t width) {
    if (!bias.empty()) kernels_.add(rows.row(row), bias.data(), width);
  };
  ForRows(plan.row_count(), [&](uint32_t row) {
    add_bias(queries_, row, weights.query_bias, shape_.query_width());
    add_bias(keys_, row, weights.key_bias, shape_.kv_width());
    add_bias(values_, row, weights.value_bias, shape_.kv_width());
    rope_.Turn(angles_.row(row), shape_.heads, queries_.row(row));
    rope_.Turn(angles_.row(row), shape_.kv_heads, keys_.row(row));
    WriteKv(kernels_, layout_, layer, plan.rows[row].position, keys_.row(row), values_.row(row),
            plan.rows[row].block);
  });
}

void Forward::Attend(const StepPlan& plan, uint32_t layer) {
  const uint32_t group = shape_.heads / shape_.kv_heads;
  const uint32_t pieces = static_cast<uint32_t>(plan.pieces.size()) * shape_.kv_heads;
  pool_.Run(pieces, [&](uint32_t index, uint32_t thread) {
    // The last pieces of a prompt see the most positions: they come first.
    const AttentionPiece& piece = plan.pieces[(pieces - 1 - index) / shape_.kv_heads];
    const uint32_t head = (pieces - 1 - index) % shape_.kv_heads;
    const HeadPlace place = PlaceOf(layout_, layer, head);
    const size_t offset = size_t{head} * group * shape_.head_dim;
    const AttentionArgs args{.blocks = piece.blocks,
                             .block_tokens = layout_.block_tokens,
                             .keys_offset = place.keys,
                             .values_offset = place.values,
                             .head_dim = shape_.head_dim,
                             .position = piece.position,
                             .tokens = piece.tokens,
                             .group = group,
                             .scale = 1.0f / std::sqrt(static_cast<float>(shape_.head_dim)),
                             .queries = queries_.row(piece.row) + offset,
                             .output = attended_.row(piece.row) + offset,
                             .stride = queries_.stride(),
                             .scratch = scratch_.row(thread)};
    kernels_.attend(args);
  });
}

void Forward::FeedForward(const PackedLayer& layer, uint32_t rows) {
  Multiply({{&layer.gate, &gate_}, {&layer.up, &up_}}, normed_, rows);
  const FormSet forms = FormSet::For({&layer.down});
  ForRows(rows, [&](uint32_t row) {
    kernels_.swiglu(gate_.row(row), up_.row(row), shape_.ffn);
    forms_.Quantise(kernels_, forms, gate_, shape_.ffn, row);
  });
  Multiply({{&layer.down, &delta_}}, gate_, rows);
}

// The rows that want logits move to the front of `normed_`, some at a time.
void Forward::WriteLogits(const StepPlan& plan, std::span<float> logits) {
  const FormSet forms = FormSet::For({&model_.output});
  for (size_t first = 0; first < plan.logits_rows.size(); first += kLogitsRows) {
    const auto rows = std::span(plan.logits_rows).subspan(first);
    const uint32_t count = static_cast<uint32_t>(std::min<size_t>(rows.size(), kLogitsRows));
    for (uint32_t i = 0; i < count; ++i) {
      kernels_.add(hidden_.row(rows[i]), delta_.row(rows[i]), shape_.hidden);
      kernels_.rms_norm(hidden_.row(rows[i]), model_.output_norm.data(), shape_.hidden,
                        shape_.norm_epsilon, normed_.row(i));
      forms_.Quantise(kernels_, forms, normed_, shape_.hidden, i);
    }
    Multiply({{&model_.output, &logits_}}, normed_, count);
    for (uint32_t i = 0; i < count; ++i) {
      std::memcpy(logits.data() + (first + i) * shape_.vocab, logits_.row(i),
                  shape_.vocab * sizeof(float));
    }
  }
}

}  // namespace cairn::engine
