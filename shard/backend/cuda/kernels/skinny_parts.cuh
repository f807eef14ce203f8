// Shared by the kernels for products of few rows: how thread blocks divide a product, and how sums
// become outputs. A block computes kOut columns for all rows of the input; its warps share out
// in_width and leave partial sums, which are added in the order of the warps.
#pragma once

#include "shard/backend/cuda/kernels.h"
#include "shard/backend/cuda/kernels/portable.cuh"

namespace penstock::shard::cuda {

// For forms other than kPlain; quantized_linear.cu.
absl::Status SkinnyQuantizedLinear(const SkinnyArgs& args, Stream stream);

namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarp;
constexpr int kOut = 16;    // rows of `weight` of a block: those of a fragment
constexpr int kInRows = 8;  // of a product

template <bool kGated>
std::uint32_t BlocksOf(const SkinnyArgs& args) {
  const std::uint32_t columns = kGated ? args.linear.out_width / 2 : args.linear.out_width;
  return CeilDivide(columns, kGated ? kOut / 2 : kOut);
}

// The row of `weight` that a thread of the warp loads for one half of its fragment. In a gated
// product eight rows of the gate come first, then the rows of `up` that belong to them.
template <bool kGated>
__device__ std::uint32_t WeightRow(const LinearArgs& linear, int lane, int half) {
  const std::uint32_t rows = kGated ? linear.out_width / 2 : linear.out_width;
  const std::uint32_t wanted =
      kGated ? blockIdx.x * (kOut / 2) + lane / 4 : blockIdx.x * kOut + half * 8 + lane / 4;
  return (wanted < rows ? wanted : rows - 1) + (kGated && half == 1 ? rows : 0);
}

template <int kTiles>
using Parts = float[kWarps][kOut][kTiles * kInRows + 1];

// The sums of a warp.
template <int kTiles>
__device__ void KeepSums(const float (&sums)[kTiles][4], Parts<kTiles>& parts) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      parts[warp][lane / 4 + i / 2 * 8][tile * kInRows + lane % 4 * 2 + i % 2] = sums[tile][i];
    }
  }
}

// Of row `weight_row` of the weights, which is row `at` of the block.
template <int kTiles>
__device__ float SumOf(const LinearArgs& linear, const Parts<kTiles>& parts, int at, int row,
                       std::uint32_t weight_row) {
  float sum = 0.0f;
#pragma unroll
  for (int warp = 0; warp < kWarps; ++warp) sum += parts[warp][at][row];
  if (linear.scales != nullptr) sum = Product(sum, linear.scales[weight_row]);
  if (linear.bias != nullptr) sum += ToFloat(static_cast<const Bf16*>(linear.bias)[weight_row]);
  return sum;
}

template <bool kGated, int kTiles>
__device__ void Finish(const SkinnyArgs& args, const Parts<kTiles>& parts) {
  constexpr int kColumns = kGated ? kOut / 2 : kOut;
  const LinearArgs& linear = args.linear;
  const std::uint32_t columns = kGated ? linear.out_width / 2 : linear.out_width;
  for (int i = threadIdx.x; i < kColumns * static_cast<int>(linear.rows); i += kThreads) {
    const int row = i / kColumns;
    const int at = i % kColumns;
    const std::uint32_t column = blockIdx.x * kColumns + at;
    if (column >= columns) continue;
    Bf16* const out = static_cast<Bf16*>(linear.out) + std::uint64_t{columns} * row + column;
    float sum = SumOf<kTiles>(linear, parts, at, row, column);
    if constexpr (kGated) {
      const float gate = Rounded<Bf16>(sum);
      const float up =
          Rounded<Bf16>(SumOf<kTiles>(linear, parts, at + kColumns, row, columns + column));
      sum = up * Rounded<Bf16>(gate / (1.0f + expf(-gate)));
    } else if (linear.accumulate) {
      sum += ToFloat(*out);
    }
    *out = FromFloat<Bf16>(sum);
  }
}

}  // namespace
}  // namespace penstock::shard::cuda
