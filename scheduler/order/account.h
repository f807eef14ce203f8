// What a tenant has been served, for fair shares between tenants: the Virtual Token Counter of
// "Fairness in Serving Large Language Models" (OSDI 2024).
//
// Work is counted in prompt tokens. A prompt token that is computed at the first start of a request
// is one, a reported output token is two. What the prefix cache has costs nothing, and so does what
// is computed again after a preemption or a loss.
#pragma once

#include <cstdint>

namespace penstock::scheduler {

constexpr std::uint64_t kPromptWork = 1;
constexpr std::uint64_t kOutputWork = 2;

struct Account {
  // Parts of a unit of work that `served` can tell: a weight of 1,000 is exact to 0.05 %. The
  // counter lasts for 80 years of 50,000 tokens a second.
  static constexpr std::uint64_t kParts = 1 << 16;

  std::uint64_t served = 0;  // work / weight, in parts, and what the tenant skipped while absent
  std::uint32_t weight = 1;

  void Charge(std::uint64_t work) { served += work * kParts / weight; }
};

}  // namespace penstock::scheduler
