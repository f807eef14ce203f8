// The gauges that show how many KV cache blocks are in each state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "router/metrics/families.h"

namespace penstock::router {

struct BlockCounts {
  std::uint64_t free = 0;
  std::uint64_t used = 0;
  std::uint64_t cached = 0;
  std::uint64_t retiring = 0;
};

class BlockGauges {
 public:
  // Adds four gauges to the family: `labels` and the state.
  explicit BlockGauges(Family<Gauge>& family, prometheus::Labels labels = {}) {
    constexpr std::array kStates = {"used", "cached", "retiring", "free"};
    for (std::size_t i = 0; i < kStates.size(); ++i) {
      labels["state"] = kStates[i];
      gauges_[i] = &family.Add(labels);
    }
  }

  void Show(const BlockCounts& blocks) {
    Set(*gauges_[0], blocks.used);
    Set(*gauges_[1], blocks.cached);
    Set(*gauges_[2], blocks.retiring);
    // Set last, so that no reader counts a freed block twice.
    Set(*gauges_[3], blocks.free);
  }

 private:
  std::array<Gauge*, 4> gauges_{};
};

}  // namespace penstock::router
