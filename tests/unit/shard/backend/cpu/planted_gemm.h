// The mistake that batch invariance forbids, on purpose: a matrix product that sums K in two halves
// when there is one row only, as matrix-vector kernels do. Tests plant it to see that they notice.
#pragma once

#include <algorithm>
#include <cstddef>

#include "shard/backend/cpu/kernels.h"

namespace penstock::shard::cpu {

inline void SplitKOfOneRow(const Kernels& kernels, const GemmArgs& args) {
  const bool int8 = args.groups != nullptr;
  const auto gemm = int8 ? kernels.int8.gemm : kernels.gemm;
  if (args.rows > 1 || args.epilogue == Epilogue::kGate) return gemm(args);
  const std::size_t columns = kernels.layout.PanelColumns();
  const std::size_t weight_bytes =  // of a step of a panel
      columns * (int8 ? kInt8Pack : kernels.layout.pack * DTypeBytes(kernels.weight));
  const std::size_t input_bytes =
      int8 ? kernels.int8.step_bytes : kernels.layout.pack * DTypeBytes(kernels.activation);
  constexpr std::size_t kGroupSteps = kInt8Group / kInt8Pack;
  const std::size_t half = int8 ? args.steps / 2 / kGroupSteps * kGroupSteps : args.steps / 2;
  if (half == 0) return gemm(args);
  // Panel by panel, since a half of K lies within a panel.
  for (std::size_t v = 0; v < args.vectors; v += kernels.layout.panel_vectors) {
    const std::size_t panel = (args.first_vector + v) / kernels.layout.panel_vectors;
    const auto* base =
        static_cast<const std::byte*>(args.weights) + panel * args.steps * weight_bytes;
    GemmArgs part = args;
    part.out = static_cast<float*>(args.out) + panel * columns;
    part.out_columns = args.out_columns - panel * columns;
    if (args.bias != nullptr) part.bias = args.bias + panel * columns;
    if (int8) part.scales = args.scales + panel * columns;
    part.first_vector = 0;
    part.vectors = std::min(kernels.layout.panel_vectors, args.vectors - v);
    part.weights = base;
    part.steps = half;
    gemm(part);
    part.weights = base + half * weight_bytes;
    part.input = static_cast<const std::byte*>(args.input) + half * input_bytes;
    if (int8) part.groups = args.groups + half / kGroupSteps;
    part.steps = args.steps - half;
    part.bias = nullptr;
    part.epilogue = Epilogue::kAdd;
    gemm(part);
  }
}

}  // namespace penstock::shard::cpu
