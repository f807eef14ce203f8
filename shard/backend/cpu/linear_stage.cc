#include "shard/backend/cpu/linear_stage.h"

#include <algorithm>

#include "shard/backend/cpu/threads/work_split.h"

namespace penstock::shard::cpu {

GemmArgs LinearStage::Quantized(const Stage& stage, const GemmArgs& whole, std::size_t thread) {
  const bool few = whole.rows <= kPrivateRows;
  const IntegerRows& out = few ? buffers_.Thread(thread).integers : buffers_.integers();
  const Share share = few ? Share{0, whole.rows} : EvenShare(whole.rows, pool_.threads(), thread);
  const std::size_t row_bytes = whole.input_stride * DTypeBytes(kernels_.activation);
  for (std::size_t row = share.first; row < share.first + share.count; ++row) {
    stage.matrix->kernels().quantize({static_cast<const std::byte*>(whole.input) + row * row_bytes,
                                      stage.matrix->inner(), out.values + row * out.stride,
                                      out.groups + row * out.group_stride});
  }
  if (!few) pool_.Barrier();
  GemmArgs args = whole;
  args.input = out.values;
  args.input_stride = out.stride;
  args.groups = out.groups;
  args.group_stride = out.group_stride;
  args.scales = stage.matrix->scales();
  return args;
}

void LinearStage::RunAdapted(const AdapterProduct& product, GemmArgs args, std::size_t first_row,
                             const PackedMatrix& matrix, Share part, std::size_t thread) {
  ThreadScratch& scratch = buffers_.Thread(thread);
  const std::size_t grain = kAddedVectors / matrix.UnitVectors();
  args.added = scratch.added;
  for (std::size_t unit = part.first; unit < part.first + part.count;) {
    const std::size_t end = std::min(part.first + part.count, (unit / grain + 1) * grain);
    args.first_vector = unit * matrix.UnitVectors();
    args.vectors = (end - unit) * matrix.UnitVectors();
    product.Up(args, first_row, kernels_.layout.lanes, scratch.added_sums, scratch.added);
    matrix.kernels().gemm(args);
    unit = end;
  }
}

void LinearStage::Run(const Stage& stage, const GemmArgs& whole, RowAdapters adapters,
                      std::size_t thread) {
  const PackedMatrix& matrix = *stage.matrix;
  const AdapterProduct product{stage.weight, adapters, buffers_.low()};
  if (!adapters.empty()) {
    product.Down(whole, DTypeBytes(kernels_.activation), pool_.threads(), thread);
    pool_.Barrier();
  }
  const bool quantized = matrix.kernels().quantize != nullptr;
  GemmArgs args = quantized ? Quantized(stage, whole, thread) : whole;
  const std::size_t element = quantized ? 1 : DTypeBytes(kernels_.activation);
  const BufferView& out = buffers_.View(stage.out);
  const std::size_t tiles = (args.rows + kRowTile - 1) / kRowTile;
  const GridShare share = SplitGrid(tiles, matrix.units(), pool_.threads(), thread);
  const std::size_t first_row = share.rows.first * kRowTile;
  const std::size_t end_row = std::min(args.rows, (share.rows.first + share.rows.count) * kRowTile);
  if (first_row >= end_row) return;
  args.input = static_cast<const std::byte*>(args.input) + first_row * args.input_stride * element;
  if (quantized) args.groups += first_row * args.group_stride;
  args.rows = end_row - first_row;
  args.out = static_cast<std::byte*>(args.out) + first_row * args.out_stride * out.element;
  args.weights = matrix.data();
  args.overflow = matrix.overflow();
  args.steps = matrix.steps();
  args.bias = stage.bias;
  args.epilogue = stage.epilogue;
  args.activation = stage.activation;
  args.scratch = buffers_.Thread(thread).gemm;
  const auto gemm = matrix.kernels().gemm;
  // The kernel computes few rows against two panels at a time.
  const std::size_t grain = 2 * kernels_.layout.panel_vectors / matrix.UnitVectors();
  columns_.Begin(thread, share.columns);
  for (Share part = columns_.Next(thread, share.peers, grain); part.count > 0;
       part = columns_.Next(thread, share.peers, grain)) {
    if (!adapters.empty()) {
      RunAdapted(product, args, first_row, matrix, part, thread);
      continue;
    }
    args.first_vector = part.first * matrix.UnitVectors();
    args.vectors = part.count * matrix.UnitVectors();
    gemm(args);
  }
}

}  // namespace penstock::shard::cpu
