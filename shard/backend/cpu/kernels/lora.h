// The two products of a LoRA adapter for one row. Every result is a sum of fixed shape over one
// vector, so its bits depend on the row and the adapter alone. Internal to the including file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shard/backend/cpu/kernels.h"

namespace penstock::shard::cpu {
namespace {

inline constexpr std::size_t kLoraRanksAtOnce = 4;

// `Ranks` products from `rank` on, each of two sums side by side.
template <class Activation, class Element, std::size_t Ranks>
void LoraDownOf(const LoraDownArgs& args, std::size_t rank) {
  const auto* x = static_cast<const Activation*>(args.input);
  const auto* down = static_cast<const Element*>(args.down) + rank * args.stride;
  Vec even[Ranks], odd[Ranks];
  for (std::size_t r = 0; r < Ranks; ++r) even[r] = odd[r] = Zero();
  for (std::size_t i = 0; i < args.stride; i += 2 * kLanes) {
    const Vec first = LoadActivations(x + i);
    const Vec second = LoadActivations(x + i + kLanes);
    for (std::size_t r = 0; r < Ranks; ++r) {
      const Element* row = down + r * args.stride + i;
      even[r] = MultiplyAdd(first, LoadActivations(row), even[r]);
      odd[r] = MultiplyAdd(second, LoadActivations(row + kLanes), odd[r]);
    }
  }
  for (std::size_t r = 0; r < Ranks; ++r) {
    args.out[rank + r] = SumOfLanes(Add(even[r], odd[r])) * args.scales[rank + r];
  }
}

template <class Activation, class Element>
void LoraDown(const LoraDownArgs& args) {
  std::size_t rank = args.first;
  for (; rank + kLoraRanksAtOnce <= args.end; rank += kLoraRanksAtOnce) {
    LoraDownOf<Activation, Element, kLoraRanksAtOnce>(args, rank);
  }
  for (; rank < args.end; ++rank) LoraDownOf<Activation, Element, 1>(args, rank);
}

template <class Element>
void LoraUp(const LoraUpArgs& args) {
  const auto* up = static_cast<const Element*>(args.up);
  for (std::size_t v = 0; v < args.vectors; ++v) {
    float* out = args.out + v * args.step * kLanes;
    Vec sum = Load(out);
    for (std::size_t r = 0; r < args.ranks; ++r) {
      sum =
          MultiplyAdd(Fill(args.low[r]), LoadActivations(up + (v * args.ranks + r) * kLanes), sum);
    }
    Store(out, sum);
  }
}

template <class Activation, class Element>
constexpr LoraKernels LoraOf() {
  return {LoraDown<Activation, Element>, LoraUp<Element>};
}

}  // namespace
}  // namespace penstock::shard::cpu
