// A product of random inputs and weights for the kernels' tests: every instruction set of this
// processor with every way to keep weights.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "shard/backend/cpu/formats/compressed_block.h"
#include "shard/backend/cpu/formats/kernels/tables.h"
#include "shard/backend/cpu/formats/weight_format.h"
#include "shard/backend/cpu/isa.h"
#include "shard/backend/cpu/kernels.h"
#include "shard/backend/cpu/threads/work_split.h"
#include "shard/backend/cpu/weights/packed_matrix.h"

namespace penstock::shard::cpu {

inline std::uint16_t ToBf16(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// Kernels and a weight format.
struct Case {
  Kernels kernels;
  FormatId format = FormatId::kPlain;
  const FormatKernels& of_format() const { return kernels.formats[format]; }
  bool plain() const { return of_format().quantize == nullptr; }
  void Gemm(const GemmArgs& args) const {
    // A matrix that the format cannot store has its fallback, which needs no overflow.
    const WeightFormat* const fallback = FormatOf(format).Fallback();
    const bool falls_back = fallback != nullptr && args.overflow == nullptr;
    kernels.formats[falls_back ? fallback->id() : format].gemm(args);
  }
  std::string Name() const {
    std::string name = std::string(IsaName(kernels.isa)) + " " +
                       std::string(DTypeName(kernels.weight)) + " " +
                       std::string(FormatOf(format).name());
    if (!plain()) name += "/" + std::to_string(of_format().step_bytes);
    return name;
  }
};

// One product: random inputs and weights in the types of the kernels.
struct Problem {
  Problem(const Case& of, std::size_t rows_of_input, std::size_t inner_size, std::size_t outputs,
          bool gated)
      : kind(of),
        rows(rows_of_input),
        inner(inner_size),
        stride((inner_size + 63) / 32 * 32),
        matrix({gated ? 2 * outputs : outputs, inner_size, gated}, of.kernels,
               FormatOf(of.format)) {
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
    overflow_memory.resize(matrix.OverflowBlocks() * kPlainBlockBytes / 64);
    if (matrix.OverflowBlocks() > 0) {
      matrix.SetOverflow(reinterpret_cast<std::byte*>(overflow_memory.data()));
    }
    Pack(data);
    std::vector<float> plain(weight_rows);
    for (float& value : plain) value = normal(random);
    bias = plain;
    packed_bias.resize(matrix.PaddedColumns());
    matrix.PackBias(plain.data(), packed_bias.data());
    if (!kind.plain()) Quantize(weight_rows);
  }

  void Pack(const void* data) {
    Overflow overflow(reinterpret_cast<std::byte*>(overflow_memory.data()), matrix.OverflowBlocks(),
                      kPlainBlockBytes);
    const std::size_t weight_rows = (matrix.gated() ? 2 : 1) * matrix.outputs();
    const TensorView view =
        TensorView::Matrix(const_cast<void*>(data), static_cast<std::int64_t>(weight_rows),
                           static_cast<std::int64_t>(inner), kind.kernels.weight);
    ASSERT_TRUE(matrix.Pack(view, {0, matrix.panels()}, overflow));
  }

  // Rounds the input for the kernel, and records the values that input and weights have then.
  void Quantize(std::size_t weight_rows) {
    const std::size_t group = kind.of_format().group;
    const std::size_t groups = (inner + group - 1) / group;
    integers.stride = stride / kind.of_format().pack * kind.of_format().step_bytes;
    integers.group_stride = groups;
    values.resize(rows * integers.stride);
    group_scales.resize(rows * groups);
    integers.values = values.data();
    integers.groups = group_scales.data();
    for (std::size_t row = 0; row < rows; ++row) QuantizeRow(row);
    for (std::size_t row = 0; row < weight_rows; ++row) RoundWeights(row);
  }

  void QuantizeRow(std::size_t row) {
    const bool wide = kind.kernels.activation == DType::kFloat32;
    kind.of_format().quantize({wide ? static_cast<const void*>(&input[row * stride])
                                    : static_cast<const void*>(&input_bits[row * stride]),
                               inner, integers.values + row * integers.stride,
                               integers.groups + row * integers.group_stride});
    const float most = kind.format == FormatId::kInt16 ? float{kInt16Largest} : 127.0f;
    const std::size_t group = kind.of_format().group;
    for (std::size_t first = 0; first < inner; first += group) {
      Round(&input[row * stride + first], std::min(group, inner - first), most);
    }
  }

  void RoundWeights(std::size_t row) {
    std::vector<float> unpacked(inner);
    matrix.UnpackRow(row, unpacked.data());
    float* exact = &weights[row * inner];
    if (kind.format == FormatId::kInt8) Round(exact, inner, 127.0f);
    float most = kind.format == FormatId::kInt8 ? 1e-6f : 6e-5f;
    for (std::size_t k = 0; k < inner; ++k) {
      if (kind.format == FormatId::kInt4 && k % kInt4Group == 0) {
        most = HalfAStep(exact + k, std::min(kInt4Group, inner - k));
      }
      ASSERT_NEAR(unpacked[k], exact[k], most) << "row " << row << ", K " << k;
    }
    std::copy(unpacked.begin(), unpacked.end(), exact);
  }

  // Of a group of int4, whose scale is a float16: 15 steps span its weights and 0.
  static float HalfAStep(const float* weights, std::size_t count) {
    const float least = std::min(0.0f, *std::min_element(weights, weights + count));
    const float most = std::max(0.0f, *std::max_element(weights, weights + count));
    return 0.51f * (most - least) / 15.0f;
  }

  static void Round(float* values, std::size_t count, float most) {
    float largest = 0;
    for (std::size_t i = 0; i < count; ++i) largest = std::max(largest, std::fabs(values[i]));
    if (largest == 0) return;
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = std::nearbyint(values[i] * (most / largest)) * (largest / most);
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
    if (!kind.plain()) {
      args.input = integers.values + first * integers.stride;
      args.input_stride = integers.stride;
      args.groups = integers.groups + first * integers.group_stride;
      args.group_stride = integers.group_stride;
      args.scales = matrix.scales();
    }
    args.rows = count;
    args.weights = matrix.data();
    args.overflow = matrix.overflow();
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
  std::vector<Line> memory, overflow_memory;
  std::vector<float> weights, input, bias, packed_bias;
  std::vector<std::uint16_t> weight_bits, input_bits;
  IntegerRows integers;
  std::vector<std::byte> values;
  std::vector<IntegerGroup> group_scales;
};

using GemmFunction = std::function<void(GemmArgs)>;

inline std::vector<float> Multiply(const Problem& problem, const GemmFunction& gemm,
                                   std::size_t first, std::size_t count, std::size_t threads) {
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
inline std::size_t DifferingBits(const Problem& problem, const GemmFunction& gemm) {
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
inline std::vector<Case> AllCases() {
  std::vector<Case> all;
  const auto best = ChooseIsa();
  EXPECT_TRUE(best.ok()) << best.status();
  for (Isa isa : {Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16}) {
    if (!best.ok() || isa > *best) continue;
    for (DType dtype : {DType::kFloat32, DType::kBFloat16}) {
      const Kernels& kernels = *FindKernels(isa, dtype);
      for (const WeightFormat* format : AllFormats()) {
        if (kernels.formats[format->id()].gemm != nullptr) all.push_back({kernels, format->id()});
      }
    }
  }
  // On a processor with AVX512_VNNI the kernels of int4 and int8 without it are not in the table.
  if (best.ok() && *best >= Isa::kAvx512) {
    Kernels kernels = *FindKernels(Isa::kAvx512, DType::kFloat32);
    kernels.formats = kAvx512Float32Formats;
    all.push_back({kernels, FormatId::kInt4});
    all.push_back({kernels, FormatId::kInt8});
  }
  return all;
}

inline GemmFunction Plain(const Case& kind) {
  return [&kind](const GemmArgs& args) { kind.Gemm(args); };
}

}  // namespace penstock::shard::cpu
