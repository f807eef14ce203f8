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
#include "shard/backend/cpu/kernels/tables.h"
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

// Kernels and how they keep weights.
struct Case {
  Kernels kernels;
  bool int8 = false;
  void Gemm(const GemmArgs& args) const { int8 ? kernels.int8.gemm(args) : kernels.gemm(args); }
  std::string Name() const {
    return std::string(IsaName(kernels.isa)) + " " + std::string(DTypeName(kernels.weight)) +
           (int8 ? " int8/" + std::to_string(kernels.int8.step_bytes) : "");
  }
};

PackedMatrix MatrixOf(const Case& kind, const MatrixShape& shape) {
  return kind.int8 ? PackedMatrix::Int8(shape, kind.kernels.layout, kind.kernels.weight)
                   : PackedMatrix(shape, kind.kernels.layout, kind.kernels.weight);
}

// One product: random inputs and weights in the types of the kernels.
struct Problem {
  Problem(const Case& of, std::size_t rows_of_input, std::size_t inner_size, std::size_t outputs,
          bool gated)
      : kind(of),
        rows(rows_of_input),
        inner(inner_size),
        stride((inner_size + 63) / 32 * 32),
        matrix(MatrixOf(of, {gated ? 2 * outputs : outputs, inner_size, gated})) {
    const Kernels& table = kind.kernels;
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
    if (kind.int8) Quantize(weight_rows);
  }

  // The input for the kernel, and what input and weights are after rounding.
  void Quantize(std::size_t weight_rows) {
    const std::size_t groups = (inner + kInt8Group - 1) / kInt8Group;
    int8.stride = stride / kInt8Pack * kind.kernels.int8.step_bytes;
    int8.group_stride = groups;
    int8_values.resize(rows * int8.stride);
    int8_groups.resize(rows * groups);
    int8.values = int8_values.data();
    int8.groups = int8_groups.data();
    for (std::size_t row = 0; row < rows; ++row) {
      const bool wide = kind.kernels.activation == DType::kFloat32;
      kind.kernels.int8.quantize({wide ? static_cast<const void*>(&input[row * stride])
                                       : static_cast<const void*>(&input_bits[row * stride]),
                                  inner, int8.values + row * int8.stride,
                                  int8.groups + row * groups});
      for (std::size_t first = 0; first < inner; first += kInt8Group) {
        Round(&input[row * stride + first], std::min(kInt8Group, inner - first));
      }
    }
    for (std::size_t row = 0; row < weight_rows; ++row) {
      Round(&weights[row * inner], inner);
      std::vector<float> unpacked(inner);
      matrix.UnpackRow(row, unpacked.data());
      for (std::size_t k = 0; k < inner; ++k) {
        ASSERT_NEAR(unpacked[k], weights[row * inner + k], 1e-6) << "row " << row << ", K " << k;
      }
    }
  }

  static void Round(float* values, std::size_t count) {
    float largest = 0;
    for (std::size_t i = 0; i < count; ++i) largest = std::max(largest, std::fabs(values[i]));
    if (largest == 0) return;
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = std::nearbyint(values[i] * (127.0f / largest)) * (largest / 127.0f);
    }
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
    const bool wide = kind.kernels.activation == DType::kFloat32;
    args.input = wide ? static_cast<const void*>(input.data() + first * stride)
                      : static_cast<const void*>(input_bits.data() + first * stride);
    args.input_stride = stride;
    if (kind.int8) {
      args.input = int8.values + first * int8.stride;
      args.input_stride = int8.stride;
      args.groups = int8.groups + first * int8.group_stride;
      args.group_stride = int8.group_stride;
      args.scales = matrix.scales();
    }
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

  const Case& kind;
  std::size_t rows, inner, stride;
  PackedMatrix matrix;
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> memory;
  std::vector<float> weights, input, bias, packed_bias;
  std::vector<std::uint16_t> weight_bits, input_bits;
  Int8Rows int8;
  std::vector<std::byte> int8_values;
  std::vector<Int8Group> int8_groups;
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

// Every instruction set of this processor with every type.
std::vector<Case> AllCases() {
  std::vector<Case> all;
  const auto best = ChooseIsa();
  EXPECT_TRUE(best.ok()) << best.status();
  for (Isa isa : {Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16}) {
    if (!best.ok() || isa > *best) continue;
    for (DType dtype : {DType::kFloat32, DType::kBFloat16}) {
      for (bool int8 : {false, true}) all.push_back({*FindKernels(isa, dtype), int8});
    }
  }
  // On a processor with AVX512_VNNI the others take its products of int8.
  if (best.ok() && *best >= Isa::kAvx512) all.push_back({kAvx512Float32, true});
  return all;
}

GemmFunction Plain(const Case& kind) {
  return [&kind](const GemmArgs& args) { kind.Gemm(args); };
}

TEST(Gemm, GivesTheProductAtAnySize) {
  for (const Case& kind : AllCases()) {
    for (std::size_t inner : {1u, 2u, 7u, 64u, 601u}) {
      for (std::size_t outputs : {1u, 15u, 16u, 40u, 65u, 130u}) {
        const Problem problem(kind, 13, inner, outputs, false);
        const auto out = Multiply(problem, Plain(kind), 0, 13, 2);
        for (std::size_t i = 0; i < out.size(); ++i) {
          ASSERT_NEAR(out[i], problem.Dot(i / outputs, i % outputs), 2e-4)
              << kind.Name() << ", K " << inner << ", N " << outputs << ", element " << i;
        }
      }
    }
  }
}

TEST(Gemm, AddsToWhatIsThere) {
  for (const Case& kind : AllCases()) {
    const Problem problem(kind, 7, 50, 33, false);
    const auto add = [&kind](GemmArgs args) {
      args.epilogue = Epilogue::kAdd;  // Multiply fills with -1
      kind.Gemm(args);
    };
    const auto sum = Multiply(problem, add, 0, 7, 1);
    const auto plain = Multiply(problem, Plain(kind), 0, 7, 1);
    for (std::size_t i = 0; i < sum.size(); ++i) ASSERT_EQ(sum[i], plain[i] - 1.0f);
  }
}

TEST(Gemm, GatesWithSilu) {
  for (const Case& kind : AllCases()) {
    // Rounding is the backend tests' business.
    if (kind.kernels.activation != DType::kFloat32) continue;
    const std::size_t outputs = 43;
    const Problem problem(kind, 9, 70, outputs, true);
    const auto gate = [&kind](GemmArgs args) {
      args.epilogue = Epilogue::kGate;
      kind.Gemm(args);
    };
    const auto out = Multiply(problem, gate, 0, 9, 3);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const double x = problem.Dot(i / outputs, i % outputs);
      const double up = problem.Dot(i / outputs, outputs + i % outputs);
      ASSERT_NEAR(out[i], x / (1 + std::exp(-x)) * up, 1e-4) << kind.Name() << " " << i;
    }
  }
}

TEST(Gemm, TheNumberOfRowsAndThreadsChangesNoBit) {
  for (const Case& kind : AllCases()) {
    // Longer than one block of K, so that partial sums are stored and taken up again.
    const Problem problem(kind, 512, 1100, 72, false);
    EXPECT_EQ(DifferingBits(problem, Plain(kind)), 0u) << kind.Name();
  }
}

// Rows so long that few of them go through the panels together, and K of several blocks of int8.
TEST(Gemm, LongRowsChangeNoBit) {
  for (const Case& kind : AllCases()) {
    const Problem problem(kind, 64, 4500, 40, false);
    EXPECT_EQ(DifferingBits(problem, Plain(kind)), 0u) << kind.Name();
  }
}

// Sums of integers are exact, so only the order of the groups matters, which all keep.
TEST(Gemm, Int8HasTheSameBitsOnEveryInstructionSet) {
  std::vector<float> first;
  for (const Case& kind : AllCases()) {
    if (!kind.int8 || kind.kernels.weight != DType::kFloat32) continue;
    const Problem problem(kind, 20, 1100, 72, false);
    const std::vector<float> out = Multiply(problem, Plain(kind), 0, 20, 1);
    if (first.empty()) first = out;
    EXPECT_EQ(std::memcmp(out.data(), first.data(), out.size() * sizeof(float)), 0) << kind.Name();
  }
}

TEST(Gemm, AValueThatIsNotFiniteSpoilsItsRowOnly) {
  for (const Case& kind : AllCases()) {
    if (!kind.int8 || kind.kernels.activation != DType::kFloat32) continue;
    for (float bad : {std::nanf(""), INFINITY, -INFINITY}) {
      Problem problem(kind, 3, 300, 20, false);
      problem.input[problem.stride + 170] = bad;
      kind.kernels.int8.quantize({&problem.input[problem.stride], 300,
                                  problem.int8.values + problem.int8.stride,
                                  problem.int8.groups + problem.int8.group_stride});
      const auto out = Multiply(problem, Plain(kind), 0, 3, 1);
      for (std::size_t i = 0; i < out.size(); ++i) {
        ASSERT_EQ(std::isnan(out[i]), i / 20 == 1) << kind.Name() << " " << i;
      }
    }
  }
}

// Rows that are all zero, and values whose inverse would overflow.
TEST(Gemm, Int8OfNothingIsNothing) {
  for (const Case& kind : AllCases()) {
    if (!kind.int8 || kind.kernels.activation != DType::kFloat32) continue;
    Problem problem(kind, 1, 300, 20, false);
    for (float tiny : {0.0f, 1e-40f, 1e-36f}) {
      std::fill_n(problem.input.begin(), 300, tiny);
      kind.kernels.int8.quantize(
          {problem.input.data(), 300, problem.int8.values, problem.int8.groups});
      const auto out = Multiply(problem, Plain(kind), 0, 1, 1);
      for (std::size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], problem.bias[i], 1e-30);
    }
  }
}

// The tests above must notice what they are there for.
TEST(Gemm, AnOrderThatDependsOnTheNumberOfRowsIsNoticed) {
  for (const Case& kind : AllCases()) {
    const Problem problem(kind, 8, 1100, 72, false);
    const auto planted = [&kind](const GemmArgs& args) { SplitKOfOneRow(kind.kernels, args); };
    EXPECT_GT(DifferingBits(problem, planted), 0u) << kind.Name();
  }
}

}  // namespace
}  // namespace penstock::shard::cpu
