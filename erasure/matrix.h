// The generator matrices of the codes, and the rows that rebuild lost shards from survivors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "erasure/codec.h"

namespace cairn::erasure {

// The factor of data shard `column` in parity shard `row`. It depends on nothing else: neither on
// k nor on m, so a narrower stripe has the parity of a wider one whose other shards are zero.
//   kPQ      row 0: 1; row 1: 2^column. Any 2 x 2 part has a determinant 2^a + 2^b != 0.
//   kCauchy  (x0 + yj) / (xi + yj) with xi = 32 + i, yj = j: a Cauchy matrix (every square part of
//            it is invertible) whose columns are scaled, which keeps that and makes row 0 all ones.
uint8_t Coefficient(CodeId code, size_t row, size_t column);

// One row per wanted shard; row r, source i at [r * source_count + i].
using Factors = std::array<uint8_t, kParityShardsMax * kDataShardsMax>;

// Fills `factors` so that wanted[r] = sum of factors[r * k + i] * sources[i]. `sources` are exactly
// k different shard indices, data shards first; `wanted` are at most m others.
void PlanDecode(const Shape& shape, std::span<const uint8_t> sources,
                std::span<const uint8_t> wanted, Factors& factors);

}  // namespace cairn::erasure
