// The matrix product of every instruction set that this processor has: right, and the same bits
// for any number of rows and any division among threads.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "shard/backend/cpu/isa.h"
#include "shard/backend/cpu/kernels.h"
#include "shard/backend/cpu/packed_matrix.h"
#include "shard/backend/cpu/work_split.h"
#include "tests/unit/shard/backend/cpu/planted_gemm.h"

namespace penstock::shard::cpu {
namespace {

std::uint16_t ToBf16(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// One product: random inputs and weights in the types of the kernels.
struct Problem {
  Problem(const Kernels& table, std::size_t rows_of_input, std::size_t inner_size,
          std::size_t outputs, bool gated)
      : kernels(table),
        rows(rows_of_input),
        inner(inner_size),
        stride((inner_size + 63) / 32 * 32),
        matrix(gated ? 2 * outputs : outputs, inner_size, gated, table.layout, table.weight) {
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    const std::size_t weight_rows = gated ? 2 * outputs : outputs;
    Fill(weights, weight_bits, weight_rows * inner, table.weight, [&] { return normal(random); });
    input.assign(rows * stride, 0.0f);
    input_bits.assign(rows * stride, 0);
    for (std::size_t i = 0; i < rows * stride; ++i) {
      if (i % stride >= inner) continue;
      input_bits[i] = ToBf16(normal(random));
      input[i] = ReadElement(input_bits.data(), i, DType::kBFloat16);
    }
    const void* data = table.weight == DType::kFloat32 ? static_cast<void*>(weights.data())
                                                       : static_cast<void*>(weight_bits.data());
    memory.resize(matrix.Bytes() / 64 + 2);
    auto* aligned = reinterpret_cast<std::byte*>(
        (reinterpret_cast<std::uintptr_t>(memory.data()) + 63) / 64 * 64);
    matrix.SetMemory(aligned);
    matrix.Pack(TensorView::Matrix(const_cast<void*>(data), static_cast<std::int64_t>(weight_rows),
                                   static_cast<std::int64_t>(inner), table.weight),
                {0, matrix.panels()});
    std::vector<float> plain(weight_rows);
    for (float& value : plain) value = normal(random);
    bias = plain;
    packed_bias.resize(matrix.PaddedColumns());
    matrix.PackBias(plain.data(), packed_bias.data());
  }

  template <class Random>
  static void Fill(std::vector<float>& floats, std::vector<std::uint16_t>& bits, std::size_t count,
                   DType dtype, Random random) {
    for (std::size_t i = 0; i < count; ++i) {
      const float value = random() * 0.1f;
      bits.push_back(ToBf16(value));
      floats.push_back(dtype == DType::kFloat32 ? value
                                                : ReadElement(bits.data(), i, DType::kBFloat16));
    }
  }

  // Rows [first, first + count) with K in [0, inner), columns divided in `parts`.
  GemmArgs Args(std::size_t first, std::size_t count, float* out) const {
    GemmArgs args;
    const bool wide = kernels.activation == DType::kFloat32;
    args.input = wide ? static_cast<const void*>(input.data() + first * stride)
                      : static_cast<const void*>(input_bits.data() + first * stride);
    args.input_stride = stride;
    args.rows = count;
    args.weights = matrix.data();
    args.steps = matrix.steps();
    args.vectors = matrix.units() * matrix.UnitVectors();
    args.bias = packed_bias.data();
    args.out = out;
    args.out_stride = matrix.outputs();
    args.out_columns = matrix.outputs();
    return args;
  }

  float Dot(std::size_t row, std::size_t column) const {
    double sum = 0;
    for (std::size_t k = 0; k < inner; ++k) {
      sum += double{input[row * stride + k]} * weights[column * inner + k];
    }
    return static_cast<float>(sum + bias[column]);
  }

  const Kernels& kernels;
  std::size_t rows, inner, stride;
  PackedMatrix matrix;
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> memory;
  std::vector<float> weights, input, bias, packed_bias;
  std::vector<std::uint16_t> weight_bits, input_bits;
};

using GemmFunction = std::function<void(GemmArgs)>;

std::vector<float> Multiply(const Problem& problem, const GemmFunction& gemm, std::size_t first,
                            std::size_t count, std::size_t threads) {
  const std::size_t width = problem.matrix.outputs();
  std::vector<float> out(count * width, -1.0f);
  std::vector<float> scratch(kGemmScratch);
  for (std::size_t t = 0; t < threads; ++t) {
    const GridShare share =
        SplitGrid((count + kRowTile - 1) / kRowTile, problem.matrix.units(), threads, t);
    const std::size_t row = share.rows.first * kRowTile;
    const std::size_t end = std::min(count, (share.rows.first + share.rows.count) * kRowTile);
    if (row >= end || share.columns.count == 0) continue;
    GemmArgs args = problem.Args(first + row, end - row, out.data() + row * width);
    args.first_vector = share.columns.first * problem.matrix.UnitVectors();
    args.vectors = share.columns.count * problem.matrix.UnitVectors();
    args.scratch = scratch.data();
    gemm(args);
  }
  return out;
}

// Elements that differ from the product of each row alone.
std::size_t DifferingBits(const Problem& problem, const GemmFunction& gemm) {
  const std::size_t width = problem.matrix.outputs();
  std::vector<float> alone;
  for (std::size_t row = 0; row < problem.rows; ++row) {
    const std::vector<float> one = Multiply(problem, gemm, row, 1, 1);
    alone.insert(alone.end(), one.begin(), one.end());
  }
  std::size_t differing = 0;
  std::vector<std::size_t> counts;
  for (std::size_t m = 2; m <= 26; ++m) counts.push_back(m);
  for (std::size_t m : {63u, 64u, 128u, 479u, 480u, 481u, 487u, 512u}) counts.push_back(m);
  for (std::size_t count : counts) {
    if (count > problem.rows) break;
    const std::size_t first = (problem.rows - count) / 2;
    for (std::size_t threads : {1u, 2u, 3u}) {
      const std::vector<float> many = Multiply(problem, gemm, first, count, threads);
      for (std::size_t i = 0; i < many.size(); ++i) {
        differing += std::memcmp(&many[i], &alone[first * width + i], sizeof(float)) != 0;
      }
    }
  }
  return differing;
}

std::vector<const Kernels*> AllKernels() {
  std::vector<const Kernels*> all;
  const auto best = ChooseIsa();
  EXPECT_TRUE(best.ok()) << best.status();
  for (Isa isa : {Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16}) {
    if (!best.ok() || isa > *best) continue;
    for (DType dtype : {DType::kFloat32, DType::kBFloat16}) {
      all.push_back(FindKernels(isa, dtype));
    }
  }
  return all;
}

std::string NameOf(const Kernels& kernels) {
  return std::string(IsaName(kernels.isa)) + " " + std::string(DTypeName(kernels.weight));
}

TEST(Gemm, GivesTheProductAtAnySize) {
  for (const Kernels* kernels : AllKernels()) {
    for (std::size_t inner : {1u, 2u, 7u, 64u, 601u}) {
      for (std::size_t outputs : {1u, 15u, 16u, 40u, 65u, 130u}) {
        const Problem problem(*kernels, 13, inner, outputs, false);
        const auto out = Multiply(problem, kernels->gemm, 0, 13, 2);
        for (std::size_t i = 0; i < out.size(); ++i) {
          ASSERT_NEAR(out[i], problem.Dot(i / outputs, i % outputs), 2e-4)
              << NameOf(*kernels) << ", K " << inner << ", N " << outputs << ", element " << i;
        }
      }
    }
  }
}

TEST(Gemm, AddsToWhatIsThere) {
  for (const Kernels* kernels : AllKernels()) {
    const Problem problem(*kernels, 7, 50, 33, false);
    const auto add = [kernels](GemmArgs args) {
      args.epilogue = Epilogue::kAdd;  // Multiply fills with -1
      kernels->gemm(args);
    };
    const auto sum = Multiply(problem, add, 0, 7, 1);
    const auto plain = Multiply(problem, kernels->gemm, 0, 7, 1);
    for (std::size_t i = 0; i < sum.size(); ++i) ASSERT_EQ(sum[i], plain[i] - 1.0f);
  }
}

TEST(Gemm, GatesWithSilu) {
  for (const Kernels* kernels : AllKernels()) {
    if (kernels->activation != DType::kFloat32)
      continue;  // rounding is the backend tests' business
    const std::size_t outputs = 43;
    const Problem problem(*kernels, 9, 70, outputs, true);
    const auto gate = [kernels](GemmArgs args) {
      args.epilogue = Epilogue::kGate;
      kernels->gemm(args);
    };
    const auto out = Multiply(problem, gate, 0, 9, 3);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const double x = problem.Dot(i / outputs, i % outputs);
      const double up = problem.Dot(i / outputs, outputs + i % outputs);
      ASSERT_NEAR(out[i], x / (1 + std::exp(-x)) * up, 1e-4) << NameOf(*kernels) << " " << i;
    }
  }
}

TEST(Gemm, TheNumberOfRowsAndThreadsChangesNoBit) {
  for (const Kernels* kernels : AllKernels()) {
    // Longer than one block of K, so that partial sums are stored and taken up again.
    const Problem problem(*kernels, 512, 1100, 72, false);
    EXPECT_EQ(DifferingBits(problem, kernels->gemm), 0u) << NameOf(*kernels);
  }
}

// The test above must notice what it is there for.
TEST(Gemm, AnOrderThatDependsOnTheNumberOfRowsIsNoticed) {
  for (const Kernels* kernels : AllKernels()) {
    const Problem problem(*kernels, 8, 1100, 72, false);
    const auto planted = [kernels](const GemmArgs& args) { SplitKOfOneRow(*kernels, args); };
    EXPECT_GT(DifferingBits(problem, planted), 0u) << NameOf(*kernels);
  }
}

}  // namespace
}  // namespace penstock::shard::cpu
