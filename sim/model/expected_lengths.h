// How long the output of a request is expected to be: the client's forecast, the 80 % quantile of
// what ended before, or a table (docs/scheduling-admission.md). Counts each observation; after
// 4,096 of them all counts are halved.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "scheduler/input.h"

namespace penstock::sim {

class ExpectedLengths {
 public:
  // Tokens of the whole output of a request that has `generated` tokens.
  std::uint32_t Expect(const scheduler::Arrival& request, std::uint32_t generated) const;
  // A request ended with `generated` tokens, neither cancelled nor failed.
  void Learn(const scheduler::Arrival& request, std::uint32_t generated);

 private:
  // With a given length: sixteenths of it. Else: lengths, rounded up to a quarter of an octave.
  using Counts = std::map<std::uint32_t, std::uint32_t>;
  std::map<std::pair<RequestClass, bool>, Counts> seen_;
};

}  // namespace penstock::sim
