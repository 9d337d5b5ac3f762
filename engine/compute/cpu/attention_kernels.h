// Attention of some query rows over paged KV. Included by the kernels_*.cc files only.
//
// Positions are visited in order, in tiles of 16, with a running maximum (online softmax). What a
// row sees depends on its own position alone: neighbours in the tile only share the loads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/compute/cpu/kernels.h"
#include "engine/compute/cpu/row_kernels.h"

namespace cairn::engine {

// The state of all rows between tiles, in the caller's scratch memory.
struct AttentionState {
  static constexpr uint32_t kTile = 16;

  float* weights;     // [row][kTile]: of the current tile.
  float* normaliser;  // [row][kTile]: sums of weights, by lane.
  float* maximum;     // [row]
  float* output;      // [row][padded head_dim]

  AttentionState(float* scratch)
      : weights(scratch),
        normaliser(weights + kAttentionRowsMax * kTile),
        maximum(normaliser + kAttentionRowsMax * kTile),
        output(maximum + kAttentionRowsMax) {}
  static size_t Floats(uint32_t head_dim) {
    return kAttentionRowsMax * (2 * kTile + 1 + (head_dim + 15) / 16 * 16);
  }
};

// scores[row][lane] = query row . key of position lane. Even and odd columns are two chains.
template <class L, int kRows>
void ScoreRows(const AttentionArgs& args, const AttentionState& state, uint32_t row,
               const uint16_t* keys) {
  const float* queries[kRows];
  typename L::Float even[kRows], odd[kRows];
  for (int r = 0; r < kRows; ++r) {
    const uint32_t at = row + static_cast<uint32_t>(r);
    queries[r] = args.queries + at / args.group * args.stride + at % args.group * args.head_dim;
    even[r] = odd[r] = L::Broadcast(0.0f);
  }
  for (uint32_t column = 0; column < args.head_dim; column += 2) {
    const typename L::Float first = L::LoadHalf(keys + 16 * column);
    const typename L::Float second = L::LoadHalf(keys + 16 * column + 16);
    for (int r = 0; r < kRows; ++r) {
      even[r] = L::Fma(L::Broadcast(queries[r][column]), first, even[r]);
      odd[r] = L::Fma(L::Broadcast(queries[r][column + 1]), second, odd[r]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    const typename L::Float score = L::Add(even[r], odd[r]);
    L::Store(state.weights + (row + static_cast<uint32_t>(r)) * AttentionState::kTile,
             L::Mul(score, L::Broadcast(args.scale)));
  }
}

// Turns a row's scores into weights relative to the new maximum; earlier sums shrink to match.
template <class L>
void WeighRow(const AttentionArgs& args, const AttentionState& state, uint32_t row,
              uint32_t tile_position) {
  const typename L::Float none = L::Broadcast(-__builtin_inff());
  const uint32_t visible = args.position + row / args.group + 1 - tile_position;
  typename L::Float scores = L::Load(state.weights + row * AttentionState::kTile);
  if (visible < AttentionState::kTile) {
    scores = L::FirstLanes(static_cast<int>(visible), scores, none);
  }
  typename L::Float sums = L::Load(state.normaliser + row * AttentionState::kTile);
  const float tile_maximum = L::ReduceMax(scores);
  if (tile_maximum > state.maximum[row]) {
    const typename L::Float shrink =
        Exp<L>(L::Sub(L::Broadcast(state.maximum[row]), L::Broadcast(tile_maximum)));
    sums = L::Mul(sums, shrink);
    const uint32_t padded = (args.head_dim + 15) / 16 * 16;
    float* output = state.output + row * padded;
    for (uint32_t i = 0; i < padded; i += 16)
      L::Store(output + i, L::Mul(L::Load(output + i), shrink));
    state.maximum[row] = tile_maximum;
  }
  const typename L::Float weights = Exp<L>(L::Sub(scores, L::Broadcast(state.maximum[row])));
  L::Store(state.weights + row * AttentionState::kTile, weights);
  L::Store(state.normaliser + row * AttentionState::kTile, L::Add(sums, weights));
}

// output[row] += weights . values, position by position, for `kVectors` registers of columns.
template <class L, int kRows, int kVectors>
void MixColumns(const AttentionArgs& args, const AttentionState& state, uint32_t row,
                const uint16_t* values, uint32_t positions, uint32_t column) {
  const uint32_t padded = (args.head_dim + 15) / 16 * 16;
  typename L::Float sum[kRows][kVectors];
  for (uint32_t r = 0; r < kRows; ++r) {
    const float* output = state.output + (row + r) * padded + column;
    for (uint32_t v = 0; v < kVectors; ++v) sum[r][v] = L::Load(output + 16 * v);
  }
  const float* weights = state.weights + row * AttentionState::kTile;
  for (uint32_t position = 0; position < positions; ++position) {
    const uint16_t* source = values + position * args.head_dim + column;
    typename L::Float value[kVectors];
    for (uint32_t v = 0; v < kVectors; ++v) value[v] = L::LoadHalf(source + 16 * v);
    for (uint32_t r = 0; r < kRows; ++r) {
      const typename L::Float weight = L::Broadcast(weights[r * AttentionState::kTile + position]);
      for (uint32_t v = 0; v < kVectors; ++v) sum[r][v] = L::Fma(weight, value[v], sum[r][v]);
    }
  }
  for (uint32_t r = 0; r < kRows; ++r) {
    float* output = state.output + (row + r) * padded + column;
    for (uint32_t v = 0; v < kVectors; ++v) L::Store(output + 16 * v, sum[r][v]);
  }
}

template <class L, int kRows>
void MixRows(const AttentionArgs& args, const AttentionState& state, uint32_t row,
             const uint16_t* values, uint32_t positions) {
  const uint32_t padded = (args.head_dim + 15) / 16 * 16;
  uint32_t column = 0;
  for (; column + 64 <= padded; column += 64) {
    MixColumns<L, kRows, 4>(args, state, row, values, positions, column);
  }
  for (; column < padded; column += 16) {
    MixColumns<L, kRows, 1>(args, state, row, values, positions, column);
  }
}

// Calls Step<kRows>(row) over [row, rows_end) with tiles of four and a smaller rest.
template <class Step>
void ForRowTiles(uint32_t row, uint32_t rows_end, Step step) {
  for (; row + 4 <= rows_end; row += 4) step.template operator()<4>(row);
  if (rows_end - row == 3) step.template operator()<3>(row);
  if (rows_end - row == 2) step.template operator()<2>(row);
  if (rows_end - row == 1) step.template operator()<1>(row);
}

template <class L>
void AttendTile(const AttentionArgs& args, const AttentionState& state, uint32_t tile_position) {
  const uint8_t* block = args.blocks[tile_position / args.block_tokens];
  const size_t in_block = size_t{tile_position % args.block_tokens} * args.head_dim;
  const uint16_t* keys = reinterpret_cast<const uint16_t*>(block + args.keys_offset) + in_block;
  const uint16_t* values = reinterpret_cast<const uint16_t*>(block + args.values_offset) + in_block;
  // Rows of tokens before the tile have finished.
  const uint32_t rows = args.tokens * args.group;
  const uint32_t first =
      tile_position > args.position ? (tile_position - args.position) * args.group : 0;
  ForRowTiles(first, rows,
              [&]<int kRows>(uint32_t row) { ScoreRows<L, kRows>(args, state, row, keys); });
  for (uint32_t row = first; row < rows; ++row) WeighRow<L>(args, state, row, tile_position);
  const uint32_t written = args.position + args.tokens - tile_position;
  const uint32_t positions = written < AttentionState::kTile ? written : AttentionState::kTile;
  ForRowTiles(first, rows, [&]<int kRows>(uint32_t row) {
    MixRows<L, kRows>(args, state, row, values, positions);
  });
}

template <class L>
void Attend(const AttentionArgs& args) {
  const AttentionState state(args.scratch);
  const uint32_t rows = args.tokens * args.group;
  const uint32_t padded = (args.head_dim + 15) / 16 * 16;
  for (uint32_t i = 0; i < rows * padded; ++i) state.output[i] = 0.0f;
  for (uint32_t i = 0; i < rows * AttentionState::kTile; ++i) state.normaliser[i] = 0.0f;
  for (uint32_t row = 0; row < rows; ++row) state.maximum[row] = -__builtin_inff();
  for (uint32_t tile = 0; tile < args.position + args.tokens; tile += AttentionState::kTile) {
    AttendTile<L>(args, state, tile);
  }
  for (uint32_t row = 0; row < rows; ++row) {
    const float sum = L::ReduceAdd(L::Load(state.normaliser + row * AttentionState::kTile));
    float* output = args.output + row / args.group * args.stride + row % args.group * args.head_dim;
    for (uint32_t i = 0; i < args.head_dim; ++i) output[i] = state.output[row * padded + i] / sum;
  }
}

}  // namespace cairn::engine
