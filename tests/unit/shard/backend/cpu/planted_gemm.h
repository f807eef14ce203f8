// The mistake that batch invariance forbids, on purpose: a matrix product that sums K in two halves
// when there is one row only, as matrix-vector kernels do. Tests plant it to see that they notice.
#pragma once

#include <algorithm>
#include <cstddef>

#include "shard/backend/cpu/weights/coded_block.h"
#include "shard/backend/cpu/kernels.h"

namespace penstock::shard::cpu {

// Bytes of so many steps of a panel: all of it, or of whole groups or blocks.
inline std::size_t PanelBytes(const Kernels& kernels, Storage storage, std::size_t steps) {
  const std::size_t columns = kernels.layout.PanelColumns();
  if (storage == Storage::kPlain) {
    return steps * columns * kernels.layout.pack * DTypeBytes(kernels.weight);
  }
  if (storage == Storage::kCoded) {
    return CodedBytes(PanelBytes(kernels, Storage::kPlain, steps));
  }
  if (storage == Storage::kInt8) return steps * columns * kInt8Pack;
  constexpr std::size_t kSteps = kIntegerGroup / kInt16Pack;
  return columns * (steps * kInt16Pack * sizeof(std::int16_t) +
                    (steps + kSteps - 1) / kSteps * sizeof(float));
}

inline void SplitKOfOneRow(const Kernels& kernels, Storage storage, const GemmArgs& args) {
  const bool plain = !HoldsIntegers(storage);
  const IntegerKernels& integers = KernelsOf(kernels, storage);
  const auto gemm = GemmOf(kernels, storage);
  if (args.rows > 1 || args.epilogue == Epilogue::kGate) return gemm(args);
  const std::size_t columns = kernels.layout.PanelColumns();
  const std::size_t input_bytes =
      plain ? kernels.layout.pack * DTypeBytes(kernels.activation) : integers.step_bytes;
  std::size_t group_steps = plain ? 1 : kIntegerGroup / integers.pack;
  if (storage == Storage::kCoded) {
    group_steps = kCodedPlain / PanelBytes(kernels, Storage::kPlain, 1);
  }
  const std::size_t half = args.steps / 2 / group_steps * group_steps;
  if (half == 0) return gemm(args);
  // Panel by panel, since a half of K lies within a panel.
  for (std::size_t v = 0; v < args.vectors; v += kernels.layout.panel_vectors) {
    const std::size_t panel = (args.first_vector + v) / kernels.layout.panel_vectors;
    const auto* base = static_cast<const std::byte*>(args.weights) +
                       panel * PanelBytes(kernels, storage, args.steps);
    GemmArgs part = args;
    part.out = static_cast<float*>(args.out) + panel * columns;
    part.out_columns = args.out_columns - panel * columns;
    if (args.bias != nullptr) part.bias = args.bias + panel * columns;
    if (args.scales != nullptr) part.scales = args.scales + panel * columns;
    part.first_vector = 0;
    part.vectors = std::min(kernels.layout.panel_vectors, args.vectors - v);
    part.weights = base;
    part.steps = half;
    gemm(part);
    part.weights = base + PanelBytes(kernels, storage, half);
    part.input = static_cast<const std::byte*>(args.input) + half * input_bytes;
    if (!plain) part.groups = args.groups + half / group_steps;
    part.steps = args.steps - half;
    part.bias = nullptr;
    part.epilogue = Epilogue::kAdd;
    gemm(part);
  }
}

}  // namespace penstock::shard::cpu
