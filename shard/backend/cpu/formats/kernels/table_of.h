// Builds the entries of a FormatTable; included after the other kernel headers.
#pragma once

#include "shard/backend/cpu/formats/format_kernels.h"

namespace penstock::shard::cpu {
namespace {

// A format whose GEMM multiplies activations as they are, by product P.
template <class P>
constexpr FormatKernels FloatFormat() {
  return {.gemm = Gemm<P, typename P::Activation>, .pack = P::kPack};
}

// A format of integers with product P.
template <class P, class Activation>
constexpr FormatKernels IntegerFormat() {
  return {.gemm = Gemm<P, Activation>,
          .pack = P::kPack,
          .quantize = Quantize<P, Activation>,
          .step_bytes = P::kLeft,
          .group = kRowGroup<P>};
}

// The formats that every instruction set has.
template <class Plain, class Int8, class Int4>
constexpr FormatTable FormatsOf() {
  FormatTable table;
  table[FormatId::kPlain] = FloatFormat<Plain>();
  table[FormatId::kInt8] = IntegerFormat<Int8, typename Plain::Activation>();
  table[FormatId::kInt4] = IntegerFormat<Int4, typename Plain::Activation>();
  return table;
}

}  // namespace
}  // namespace penstock::shard::cpu
