#include "router/dispatch/minute_sums.h"

#include <chrono>

namespace penstock::router {
namespace {

std::int64_t NumberOf(Time time) {
  return std::chrono::duration_cast<std::chrono::minutes>(time.time_since_epoch()).count();
}

void AddTo(TimeTotals& sum, const TimeTotals& totals) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += totals[i];
}

}  // namespace

void MinuteSums::Add(const TimeTotals& totals, Time now) {
  const std::int64_t number = NumberOf(now);
  Minute& minute = minutes_[static_cast<std::size_t>(number) % kMinutes];
  if (minute.number != number) minute = {number, {}};
  AddTo(minute.totals, totals);
}

TimeTotals MinuteSums::Sum(Time now) const {
  const std::int64_t oldest = NumberOf(now) - static_cast<std::int64_t>(kMinutes);
  TimeTotals sum{};
  for (const Minute& minute : minutes_) {
    if (minute.number > oldest) AddTo(sum, minute.totals);
  }
  return sum;
}

}  // namespace penstock::router
