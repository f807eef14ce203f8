// The table of one pair of types; included after all other kernel headers.
#pragma once

#include "shard/backend/cpu/kernels.h"

namespace penstock::shard::cpu {
namespace {

template <class I, class Activation>
constexpr Int8Kernels Int8Of() {
  return {I::kLeft, Quantize<I, Activation>, Gemm<I, Activation>};
}

// M multiplies matrices with weights as they are, I int8 weights; P K and V.
template <class M, class I, class P>
constexpr Kernels TableOf(Isa isa, DType weight, DType activation) {
  Kernels kernels;
  kernels.isa = isa;
  kernels.weight = weight;
  kernels.activation = activation;
  kernels.layout = {kLanes, kPanelVectors, M::kPack};
  kernels.kv_pack = P::kPack;
  kernels.gemm = Gemm<M, typename M::Activation>;
  kernels.int8 = Int8Of<I, typename P::Activation>();
  kernels.norm = RmsNorm<typename P::Activation>;
  kernels.head_norm = RmsNorm<float>;
  kernels.rope = Rope;
  kernels.write_kv = WriteKv<P>;
  kernels.write_key = WriteKey<P>;
  kernels.copy_kv = CopyKv<P>;
  kernels.copy_key = CopyKey<P>;
  kernels.unit_vector = UnitVector<P>;
  kernels.similarity = Similarity<P>;
  kernels.load_queries = LoadQueries<P>;
  kernels.attend = Attend<P>;
  kernels.merge = Merge;
  kernels.finish = Finish<P>;
  return kernels;
}

}  // namespace
}  // namespace penstock::shard::cpu
