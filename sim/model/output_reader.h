// The outputs of the core for one input, in the order in which the model expects them. The first
// difference ends the comparison.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "scheduler/output.h"

namespace penstock::sim {

// The core and the model differ.
struct Difference {
  std::string what;
};

[[noreturn]] void ThrowDifference(std::string_view what, std::string_view whose,
                                  std::uint64_t model, std::uint64_t core);

// Reads what the core gave, item by item, and compares it with what the model expects.
class OutputReader {
 public:
  explicit OutputReader(const scheduler::Outputs& out) : out_(out) {}

  // The core's next decision; null after the last one.
  const Decision* NextDecision() const {
    return decision_ < out_.decisions.size() ? &out_.decisions[decision_] : nullptr;
  }
  // The information of the core's next plan; null after the last one.
  const scheduler::StepInfo* NextStep() const {
    return plan_ < out_.steps.size() ? &out_.steps[plan_] : nullptr;
  }
  // Throws a Difference unless the core's next decision is this one.
  void Expect(const Decision& expected);
  // Returns the index of the core's next plan, which must be one of this group.
  std::size_t TakePlan(GroupId group);
  void Expect(const scheduler::PinChange& expected);
  const scheduler::Outputs& out() const { return out_; }
  // Nothing may be left.
  void ExpectEnd() const;

 private:
  const scheduler::Outputs& out_;
  std::size_t decision_ = 0;
  std::size_t plan_ = 0;
  std::size_t pin_ = 0;
};

// Throws a Difference unless both are equal. `whose` follows `what` in its text.
inline void ExpectEqual(std::string_view what, std::uint64_t model, std::uint64_t core,
                        std::string_view whose = {}) {
  if (model != core) ThrowDifference(what, whose, model, core);
}

std::string Text(const Decision& decision);

}  // namespace penstock::sim
