// A planted bug: a GEMM that sums K in two halves if there is only one row, as GEMV kernels do. It
// breaks batch invariance. Tests check that they notice it.
#pragma once

#include <algorithm>
#include <cstddef>

#include "shard/backend/cpu/formats/compressed_block.h"
#include "shard/backend/cpu/formats/weight_format.h"
#include "shard/backend/cpu/kernels.h"

namespace penstock::shard::cpu {

// Bytes of `steps` steps of a panel: all of it, or whole groups or blocks.
inline std::size_t BytesOfSteps(const Kernels& kernels, const WeightFormat& format,
                                std::size_t steps) {
  const std::size_t pack = kernels.formats[format.id()].pack;
  return format.PanelBytes({kernels.layout.PanelColumns(), steps * pack, pack, kernels.weight});
}

inline void SplitKOfOneRow(const Kernels& kernels, const WeightFormat& format,
                           const GemmArgs& args) {
  const FormatKernels& of_format = kernels.formats[format.id()];
  const auto gemm = of_format.gemm;
  const bool plain = of_format.quantize == nullptr;
  if (args.rows > 1 || args.epilogue == Epilogue::kGate) return gemm(args);
  const std::size_t columns = kernels.layout.PanelColumns();
  const std::size_t input_bytes =
      plain ? of_format.pack * DTypeBytes(kernels.activation) : of_format.step_bytes;
  std::size_t group_steps = plain ? 1 : kIntegerGroup / of_format.pack;
  if (format.id() == FormatId::kCompressed) {
    group_steps = kPlainBlockBytes / BytesOfSteps(kernels, FormatOf(FormatId::kPlain), 1);
  }
  const std::size_t half = args.steps / 2 / group_steps * group_steps;
  if (half == 0) return gemm(args);
  // Panel by panel, since a half of K lies within a panel.
  for (std::size_t v = 0; v < args.vectors; v += kernels.layout.panel_vectors) {
    const std::size_t panel = (args.first_vector + v) / kernels.layout.panel_vectors;
    const auto* base = static_cast<const std::byte*>(args.weights) +
                       panel * BytesOfSteps(kernels, format, args.steps);
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
    part.weights = base + BytesOfSteps(kernels, format, half);
    part.input = static_cast<const std::byte*>(args.input) + half * input_bytes;
    if (!plain) part.groups = args.groups + half * of_format.pack / of_format.group;
    part.steps = args.steps - half;
    part.bias = nullptr;
    part.epilogue = Epilogue::kAdd;
    gemm(part);
  }
}

}  // namespace penstock::shard::cpu
