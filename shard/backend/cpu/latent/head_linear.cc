#include "shard/backend/cpu/latent/head_linear.h"

#include <algorithm>
#include <cstring>

#include "shard/backend/cpu/threads/work_split.h"

namespace penstock::shard::cpu {

void HeadLinear::Run(std::size_t rows, std::size_t threads, std::size_t thread) const {
  const std::size_t heads = op_.matrices.size();
  const std::size_t blocks = (rows + kHeadRows - 1) / kHeadRows;
  const Share share = EvenShare(heads * blocks, threads, thread);
  for (std::size_t i = share.first; i < share.first + share.count; ++i) {
    const std::size_t first = i % blocks * kHeadRows;
    Compute(i / blocks, first, std::min(kHeadRows, rows - first), buffers_.Thread(thread));
  }
}

std::byte* HeadLinear::InputAt(std::size_t row, std::size_t head) const {
  const BufferView& in = buffers_.View(op_.in);
  return in.Row(row) + head * (op_.in_dim + op_.rest) * in.element;
}

std::byte* HeadLinear::OutputAt(std::size_t row, std::size_t head) const {
  const BufferView& out = buffers_.View(op_.out);
  return out.Row(row) + head * (op_.out_dim + op_.rest) * out.element;
}

void HeadLinear::LoadRows(std::size_t head, std::size_t first, std::size_t count,
                          const HeadScratch& scratch) const {
  const BufferView& to = scratch.in;
  for (std::size_t i = 0; i < count; ++i) {
    std::byte* const from = InputAt(first + i, head);
    std::memset(to.Row(i), 0, to.stride * to.element);
    if (HoldsActivations(op_.in)) {
      std::memcpy(to.Row(i), from, op_.in_dim * to.element);
    } else {
      kernels_.copy(
          {.input = reinterpret_cast<float*>(from), .size = op_.in_dim, .out = to.Row(i)});
    }
  }
}

void HeadLinear::Compute(std::size_t head, std::size_t first, std::size_t count,
                         ThreadScratch& scratch) const {
  const PackedMatrix& matrix = weights_.Matrix(op_.matrices[head]);
  const HeadScratch& own = scratch.head;
  LoadRows(head, first, count, own);
  GemmArgs args;
  args.input = own.in.data;
  args.input_stride = own.in.stride;
  if (const auto quantize = matrix.kernels().quantize; quantize != nullptr) {
    for (std::size_t i = 0; i < count; ++i) {
      quantize({own.in.Row(i), matrix.inner(), own.integers.values + i * own.integers.stride,
                own.integers.groups + i * own.integers.group_stride});
    }
    args.input = own.integers.values;
    args.input_stride = own.integers.stride;
    args.groups = own.integers.groups;
    args.group_stride = own.integers.group_stride;
    args.scales = matrix.scales();
  }
  args.rows = count;
  args.weights = matrix.data();
  args.overflow = matrix.overflow();
  args.steps = matrix.steps();
  args.vectors = matrix.units() * matrix.UnitVectors();
  args.out = own.out.data;
  args.out_stride = own.out.stride;
  args.out_columns = op_.out_dim;
  args.scratch = scratch.gemm;
  matrix.kernels().gemm(args);
  const auto store = HoldsActivations(op_.out) ? kernels_.copy : kernels_.wide_copy;
  for (std::size_t i = 0; i < count; ++i) {
    store({.input = own.out.Floats(i), .size = op_.out_dim, .out = OutputAt(first + i, head)});
  }
  if (op_.rest > 0) CopyRest(head, first, count);
}

void HeadLinear::CopyRest(std::size_t head, std::size_t first, std::size_t count) const {
  for (std::size_t row = first; row < first + count; ++row) {
    std::memcpy(OutputAt(row, head) + op_.out_dim * sizeof(float),
                InputAt(row, head) + op_.in_dim * sizeof(float), op_.rest * sizeof(float));
  }
}

}  // namespace penstock::shard::cpu
