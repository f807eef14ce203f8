// The mistake that batch invariance forbids, on purpose: a matrix product that sums K in two halves
// when there is one row only, as matrix-vector kernels do. Tests plant it to see that they notice.
#pragma once

#include <algorithm>
#include <cstddef>

#include "shard/backend/cpu/kernels.h"

namespace penstock::shard::cpu {

inline void SplitKOfOneRow(const Kernels& kernels, const GemmArgs& args) {
  if (args.rows > 1 || args.epilogue == Epilogue::kGate) return kernels.gemm(args);
  const std::size_t columns = kernels.layout.PanelColumns();
  const std::size_t elements = columns * kernels.layout.pack;
  const std::size_t half = args.steps / 2;
  // Panel by panel, since a half of K lies within a panel.
  for (std::size_t v = 0; v < args.vectors; v += kernels.layout.panel_vectors) {
    const std::size_t panel = (args.first_vector + v) / kernels.layout.panel_vectors;
    const auto* base = static_cast<const std::byte*>(args.weights) +
                       panel * args.steps * elements * DTypeBytes(kernels.weight);
    GemmArgs part = args;
    part.out = static_cast<float*>(args.out) + panel * columns;
    part.out_columns = args.out_columns - panel * columns;
    if (args.bias != nullptr) part.bias = args.bias + panel * columns;
    part.first_vector = 0;
    part.vectors = std::min(kernels.layout.panel_vectors, args.vectors - v);
    part.weights = base;
    part.steps = half;
    kernels.gemm(part);
    part.weights = base + half * elements * DTypeBytes(kernels.weight);
    part.input = static_cast<const std::byte*>(args.input) +
                 half * kernels.layout.pack * DTypeBytes(kernels.activation);
    part.steps = args.steps - half;
    part.bias = nullptr;
    part.epilogue = Epilogue::kAdd;
    kernels.gemm(part);
  }
}

}  // namespace penstock::shard::cpu
