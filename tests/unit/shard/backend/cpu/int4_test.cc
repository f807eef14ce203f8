// int4 weights: what packing keeps of weights, and that groups of a file stay as they are.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "shard/backend/cpu/kernels.h"
#include "shard/backend/cpu/weights/packed_matrix.h"
#include "shard/weights/weight_source.h"

namespace penstock::shard::cpu {
namespace {

// A matrix with memory of its own.
struct Int4Matrix {
  Int4Matrix(const Kernels& kernels, const MatrixShape& shape)
      : matrix(shape, kernels, FormatOf(FormatId::kInt4)), memory(matrix.Bytes() + 64) {
    const auto at = reinterpret_cast<std::uintptr_t>(memory.data());
    matrix.SetMemory(reinterpret_cast<std::byte*>((at + 63) / 64 * 64));
  }
  void Pack(const std::vector<float>& rows) {
    const auto base = reinterpret_cast<std::uintptr_t>(rows.data());
    Overflow none;
    ASSERT_TRUE(
        matrix.Pack(RowRuns{base, base, SIZE_MAX, matrix.RowBytes()}, {0, matrix.panels()}, none));
  }
  std::vector<float> Row(std::size_t row) const {
    std::vector<float> values(matrix.inner());
    matrix.UnpackRow(row, values.data());
    return values;
  }
  PackedMatrix matrix;
  std::vector<std::byte> memory;
};

std::vector<Kernels> AllKernels() {
  std::vector<Kernels> all;
  const auto best = ChooseIsa();
  EXPECT_TRUE(best.ok()) << best.status();
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16}) {
    if (best.ok() && isa <= *best) all.push_back(*FindKernels(isa, DType::kFloat32));
  }
  return all;
}

// A float16 or bfloat16 has at most eleven significant bits.
float ElevenBits(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits &= 0xffffe000u;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

TEST(Int4, GroupsOfAFileAreKeptToTheBit) {
  constexpr std::size_t kRows = 43;
  for (const Kernels& kernels : AllKernels()) {
    for (const std::size_t inner : {1u, 31u, 32u, 100u, 128u, 333u}) {
      std::mt19937 random(inner);
      std::normal_distribution<float> normal;
      const std::size_t floats = Int4RowFloats(inner), groups = (floats - inner) / 2;
      std::vector<float> rows(kRows * floats);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const bool scale = i % floats >= inner && i % floats < inner + groups;
        rows[i] = scale ? ElevenBits(normal(random) * 1e-3f) : static_cast<float>(random() % 16);
      }
      Int4Matrix packed(kernels, {.rows = kRows, .inner = inner, .int4_rows = true});
      packed.Pack(rows);
      for (std::size_t row = 0; row < kRows; ++row) {
        const float* given = &rows[row * floats];
        const std::vector<float> kept = packed.Row(row);
        for (std::size_t k = 0; k < inner; ++k) {
          const float scale = given[inner + k / kInt4Group];
          const float zero = given[inner + groups + k / kInt4Group];
          ASSERT_EQ(kept[k], (given[k] - zero) * scale) << inner << " " << row << " " << k;
        }
      }
    }
  }
}

TEST(Int4, KeepsThePartOfEachGroupThatFifteenStepsHold) {
  constexpr std::size_t kInner = 256, kRows = 200;
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> rows(kRows * kInner);
  for (float& x : rows) x = normal(random);
  Int4Matrix packed(AllKernels().front(), {.rows = kRows, .inner = kInner});
  packed.Pack(rows);
  double error = 0, all = 0;
  for (std::size_t row = 0; row < kRows; ++row) {
    const std::vector<float> kept = packed.Row(row);
    for (std::size_t k = 0; k < kInner; ++k) {
      const double exact = rows[row * kInner + k];
      error += (kept[k] - exact) * (kept[k] - exact);
      all += exact * exact;
    }
  }
  EXPECT_LT(std::sqrt(error / all), 0.082);  // Q4_0: 0.086
}

// Sizes that differ by more than float16 spans, zeros, and groups without a negative weight.
TEST(Int4, KeepsWeightsOfAnySize) {
  constexpr std::size_t kInner = 64;
  for (const float size : {1e-30f, 1e-6f, 1.0f, 1e6f, 1e30f}) {
    std::vector<float> rows(kInner, 0.0f);
    for (std::size_t k = 0; k < kInner / 2; ++k) rows[k] = size * static_cast<float>(k % 16);
    Int4Matrix packed(AllKernels().front(), {.rows = 1, .inner = kInner});
    packed.Pack(rows);
    const std::vector<float> kept = packed.Row(0);
    for (std::size_t k = 0; k < kInner; ++k) {
      EXPECT_NEAR(kept[k], rows[k], 1e-3f * rows[k]) << size << " " << k;
    }
  }
}

TEST(Int4, AWeightThatIsNotFiniteMakesItsOutputNotANumber) {
  constexpr std::size_t kInner = 64;
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), INFINITY, -INFINITY}) {
    std::vector<float> rows(3 * kInner, 0.5f);
    rows[kInner + 40] = bad;
    Int4Matrix packed(AllKernels().front(), {.rows = 3, .inner = kInner});
    packed.Pack(rows);
    for (std::size_t row = 0; row < 3; ++row) {
      EXPECT_EQ(std::isnan(packed.Row(row).front()), row == 1) << bad;
    }
  }
}

}  // namespace
}  // namespace penstock::shard::cpu
