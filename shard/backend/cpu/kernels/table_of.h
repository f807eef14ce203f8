// The table of one pair of types; included after all other kernel headers.
#pragma once

#include "shard/backend/cpu/kernels.h"

namespace penstock::shard::cpu {
namespace {

template <class I, class Activation>
constexpr IntegerKernels IntegersOf() {
  return {I::kPack, I::kLeft, Quantize<I, Activation>, Gemm<I, Activation>};
}

template <class C>
constexpr CellKernels CellsOf() {
  if constexpr (kScaled<C>) {
    return {C::kPack, WriteScaledKv, CopyScaledKv, LoadQueries<C>, Attend<C>};
  } else {
    return {C::kPack, WriteKv<C>, CopyKv<C>, LoadQueries<C>, Attend<C>};
  }
}

// M multiplies matrices with weights as they are, I int8 weights, C cells of bfloat16, P keys of a
// cache that holds keys only.
template <class M, class I, class P, class C>
constexpr Kernels TableOf(Isa isa, DType weight, DType activation) {
  Kernels kernels;
  kernels.isa = isa;
  kernels.weight = weight;
  kernels.activation = activation;
  kernels.layout = {kLanes, kPanelVectors, M::kPack};
  kernels.gemm = Gemm<M, typename M::Activation>;
  kernels.coded_gemm = nullptr;
  kernels.int8 = IntegersOf<I, typename P::Activation>();
  kernels.int16 = {};
  kernels.pack_int16 = nullptr;
  kernels.norm = RmsNorm<typename P::Activation>;
  kernels.head_norm = RmsNorm<float>;
  kernels.layer_norm = LayerNorm<typename P::Activation>;
  kernels.wide_layer_norm = LayerNorm<float>;
  kernels.rope = Rope;
  kernels.float32_cells = CellsOf<Float32Product>();
  kernels.bfloat16_cells = CellsOf<C>();
  kernels.int8_cells = CellsOf<ScaledCells>();
  kernels.write_key = WriteKey<P>;
  kernels.copy_key = CopyKey<P>;
  kernels.unit_vector = UnitVector<P>;
  kernels.similarity = Similarity<P>;
  kernels.merge = Merge;
  kernels.finish = Finish<typename P::Activation>;
  return kernels;
}

}  // namespace
}  // namespace penstock::shard::cpu
