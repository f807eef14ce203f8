// The batch of a request-level server. It ends when its longest member ends, and until then it
// computes the rows of ended members as padding.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "scheduler/step/step_shape.h"
#include "sim/sim_group.h"

namespace penstock::sim {

class PaddedBatch {
 public:
  void Join(std::size_t member) { members_.push_back(member); }

  // A member ended. Returns true if it was the last.
  bool Leave() { return ++ended_ == members_.size(); }

  // Ends the batch and returns its members. The next batch begins empty.
  std::vector<std::size_t> Take() {
    ended_ = 0;
    return std::exchange(members_, {});
  }

  // A step with one decode row for each member, all with the context of the longest.
  scheduler::StepShape Pad(scheduler::StepShape shape, std::span<const SegmentLoad> loads) const {
    std::uint64_t longest = 0;
    for (const SegmentLoad& load : loads) {
      if (load.kind == Segment::Kind::kDecode)
        longest = std::max<std::uint64_t>(longest, load.context);
    }
    if (shape.decode_rows == 0) return shape;
    shape.decode_rows = std::max<std::uint64_t>(shape.decode_rows, members_.size());
    shape.decode_context = shape.decode_rows * longest;
    return shape;
  }

 private:
  std::vector<std::size_t> members_;
  std::size_t ended_ = 0;
};

}  // namespace penstock::sim
