// The choice of experts for one row (Routing in shard/model/program.h). Scalar, and so the same
// bits on every instruction set.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shard/model/program.h"

namespace penstock::shard::cpu {

struct Choice {
  std::uint32_t expert = 0;
  float weight = 0;
};

class Router {
 public:
  // Both [routing.experts], or null.
  Router(const Routing& routing, const float* choice_bias, const float* expert_scale = nullptr)
      : routing_(routing), choice_bias_(choice_bias), expert_scale_(expert_scale) {}

  // Writes routing.chosen choices, in ascending order of expert. Of equal experts the first counts.
  // `scratch` belongs to the calling thread and keeps its memory.
  struct Scratch {
    std::vector<float> weights, values, groups;
    std::vector<std::uint32_t> order;
  };
  void Choose(const float* scores, Scratch& scratch, std::span<Choice> out) const;

 private:
  void Weigh(const float* scores, std::vector<float>& weights) const;
  void DropGroups(Scratch& scratch) const;
  void Mix(const float* scores, Scratch& scratch, std::span<Choice> out) const;

  const Routing routing_;
  const float* const choice_bias_;
  const float* const expert_scale_;
};

}  // namespace penstock::shard::cpu
