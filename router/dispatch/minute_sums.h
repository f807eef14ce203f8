// Sums of requests' times of the last hour, by kind: a ring of one array for each minute. Not
// synchronised.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "common/time.h"
#include "router/ledger_view.h"

namespace penstock::router {

class MinuteSums {
 public:
  static constexpr std::size_t kMinutes = 60;

  void Add(const TimeTotals& totals, Time now);
  // The sum of this minute and the 59 before it.
  TimeTotals Sum(Time now) const;

 private:
  struct Minute {
    std::int64_t number = -1;  // since the clock's beginning
    TimeTotals totals{};
  };
  std::array<Minute, kMinutes> minutes_;
};

}  // namespace penstock::router
