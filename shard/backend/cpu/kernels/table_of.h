// The table of one pair of types; included after all other kernel headers.
#pragma once

#include "shard/backend/cpu/kernels.h"

namespace penstock::shard::cpu {
namespace {

template <class C>
constexpr CellKernels CellsOf() {
  if constexpr (kScaled<C>) {
    return {C::kPack, WriteScaledKv, CopyScaledKv, LoadQueries<C>, Attend<C>};
  } else {
    return {C::kPack, WriteKv<C>, CopyKv<C>, LoadQueries<C>, Attend<C>};
  }
}

// C is the product with cells of bfloat16, P that with keys of a cache that holds keys only. `pack`
// elements of K lie together in plain weights.
template <class P, class C>
constexpr Kernels TableOf(Isa isa, DType weight, DType activation, std::size_t pack) {
  Kernels kernels;
  kernels.isa = isa;
  kernels.weight = weight;
  kernels.activation = activation;
  kernels.layout = {kLanes, kPanelVectors, pack};
  kernels.norm = RmsNorm<typename P::Activation>;
  kernels.head_norm = RmsNorm<float>;
  kernels.layer_norm = LayerNorm<typename P::Activation>;
  kernels.wide_layer_norm = LayerNorm<float>;
  kernels.copy = CopyRow<typename P::Activation>;
  kernels.wide_copy = CopyRow<float>;
  kernels.sum_of_squares = SumOfSquares;
  kernels.scale_activations = ScaleActivations<typename P::Activation>;
  kernels.multiply_activations = MultiplyActivations<typename P::Activation>;
  kernels.scale_logits = ScaleLogits;
  kernels.rope = Rope;
  kernels.float32_cells = CellsOf<Float32Product>();
  kernels.bfloat16_cells = CellsOf<C>();
  kernels.int8_cells = CellsOf<ScaledCells>();
  kernels.float32_latents = LatentsOf<float>();
  kernels.bfloat16_latents = LatentsOf<std::uint16_t>();
  kernels.int8_latents = LatentsOf<std::int8_t>();
  kernels.write_key = WriteKey<P>;
  kernels.copy_key = CopyKey<P>;
  kernels.unit_vector = UnitVector<P>;
  kernels.similarity = Similarity<P>;
  kernels.merge = Merge;
  kernels.finish = Finish<typename P::Activation>;
  kernels.convolve = Convolve;
  kernels.scale_to_length = ScaleToLength;
  kernels.delta_rule = DeltaRule;
  kernels.gated_norm = GatedNorm<typename P::Activation>;
  kernels.gate_activations = GateActivations<typename P::Activation>;
  kernels.float32_lora = LoraOf<typename P::Activation, float>();
  kernels.bfloat16_lora = LoraOf<typename P::Activation, std::uint16_t>();
  return kernels;
}

}  // namespace
}  // namespace penstock::shard::cpu
