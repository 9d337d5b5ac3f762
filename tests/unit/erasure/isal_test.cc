// Byte equality with ISA-L, another implementation, wherever its matrices are the same as ours.
#include <gtest/gtest.h>
#include <isa-l/erasure_code.h>
#include <isa-l/raid.h>

#include <vector>

#include "erasure/matrix.h"
#include "tests/unit/erasure/stripe.h"

namespace cairn::erasure {
namespace {

std::vector<std::vector<uint8_t>> EncodeWithIsal(const std::vector<uint8_t>& parity_rows,
                                                 const Stripe& stripe, size_t m, size_t size) {
  std::vector<uint8_t*> data;
  for (const auto shard : stripe.data()) data.push_back(const_cast<uint8_t*>(shard.data()));
  const int k = static_cast<int>(data.size());
  std::vector<uint8_t> tables(32 * data.size() * m);
  std::vector<uint8_t> rows = parity_rows;
  ec_init_tables(k, static_cast<int>(m), rows.data(), tables.data());
  std::vector<std::vector<uint8_t>> parity(m, std::vector<uint8_t>(size));
  std::vector<uint8_t*> outputs;
  for (auto& shard : parity) outputs.push_back(shard.data());
  ec_encode_data(static_cast<int>(size), k, static_cast<int>(m), tables.data(), data.data(),
                 outputs.data());
  return parity;
}

std::vector<std::vector<uint8_t>> ParityOf(const Stripe& stripe) {
  std::vector<std::vector<uint8_t>> parity;
  for (const auto shard : stripe.parity()) parity.emplace_back(shard.begin(), shard.end());
  return parity;
}

TEST(IsaL, GeneralEncodeWithItsRsMatrixGivesOurPQForEveryWidth) {
  for (size_t k = 1; k <= kDataShardsMax; ++k) {
    for (size_t m = 1; m <= 2; ++m) {
      std::vector<uint8_t> matrix((k + m) * k);
      gf_gen_rs_matrix(matrix.data(), static_cast<int>(k + m), static_cast<int>(k));
      const std::vector<uint8_t> rows(matrix.begin() + static_cast<ptrdiff_t>(k * k), matrix.end());
      for (const size_t size : {size_t{1}, size_t{63}, size_t{1000}, size_t{70000}}) {
        const Stripe stripe(MakeCodec(k, m), size, k);
        ASSERT_EQ(EncodeWithIsal(rows, stripe, m, size), ParityOf(stripe)) << k << "+" << m;
      }
    }
  }
}

TEST(IsaL, GeneralEncodeWithOurCauchyRowsGivesOurParity) {
  for (const size_t k : {1u, 6u, 10u, 20u, 32u}) {
    for (size_t m = 3; m <= kParityShardsMax; ++m) {
      std::vector<uint8_t> rows;
      for (size_t i = 0; i < m; ++i) {
        for (size_t j = 0; j < k; ++j) rows.push_back(Coefficient(CodeId::kCauchy, i, j));
      }
      const Stripe stripe(MakeCodec(k, m), 1357, k);
      ASSERT_EQ(EncodeWithIsal(rows, stripe, m, 1357), ParityOf(stripe)) << k << "+" << m;
    }
  }
}

TEST(IsaL, Raid6RoutineGivesOurPQ) {
  for (size_t k = 2; k <= kDataShardsMax; ++k) {
    constexpr size_t kSize = 4096;  // pq_gen wants aligned shards and multiples of 32 bytes.
    const Stripe stripe(MakeCodec(k, 2), kSize, k, 64);
    GuardedShard p(kSize, 0);
    GuardedShard q(kSize, 0);
    std::vector<void*> shards;
    for (const auto shard : stripe.data()) shards.push_back(const_cast<uint8_t*>(shard.data()));
    shards.push_back(p.bytes().data());
    shards.push_back(q.bytes().data());
    ASSERT_EQ(pq_gen(static_cast<int>(k + 2), kSize, shards.data()), 0);
    ASSERT_EQ(p, stripe.shard(k)) << k;
    ASSERT_EQ(q, stripe.shard(k + 1)) << k;
  }
}

}  // namespace
}  // namespace cairn::erasure
