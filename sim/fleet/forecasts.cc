#include "sim/fleet/forecasts.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "sim/random.h"

namespace penstock::sim {
namespace {

constexpr std::size_t kMostPairs = 4000;  // requests, of which all pairs are compared

double Normal(Random& random) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += static_cast<double>(random.Next() >> 11) * 0x1p-53;
  return sum;
}

std::vector<std::uint32_t> WrongLengths(const Trace& trace, double noise, Random& random) {
  std::vector<std::uint32_t> forecasts;
  forecasts.reserve(trace.requests.size());
  for (const TraceRequest& request : trace.requests) {
    const double length = request.output_tokens * std::exp(noise * Normal(random));
    const double bounded = std::clamp<double>(std::round(length), 1, kMaxTraceTokens);
    forecasts.push_back(static_cast<std::uint32_t>(bounded));
  }
  return forecasts;
}

std::vector<std::uint32_t> WrongRanks(const Trace& trace, double noise, Random& random) {
  const std::size_t count = trace.requests.size();
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto length_of = [&](std::size_t i) { return trace.requests[i].output_tokens; };
  std::ranges::stable_sort(order, {}, length_of);
  std::vector<std::uint32_t> lengths(count);
  std::vector<std::pair<double, std::size_t>> places(count);
  for (std::size_t rank = 0; rank < count; ++rank) {
    lengths[rank] = length_of(order[rank]);
    const double right = static_cast<double>(rank) / static_cast<double>(count);
    places[rank] = {right + noise * Normal(random), order[rank]};
  }
  std::ranges::sort(places);
  std::vector<std::uint32_t> forecasts(count);
  for (std::size_t i = 0; i < count; ++i) forecasts[places[i].second] = std::max(1U, lengths[i]);
  return forecasts;
}

int Sign(std::uint32_t a, std::uint32_t b) { return (a > b) - (a < b); }

}  // namespace

std::vector<std::uint32_t> Forecasts(const Trace& trace, ForecastError error, double noise,
                                     std::uint64_t seed) {
  Random random(seed);
  return error == ForecastError::kRank ? WrongRanks(trace, noise, random)
                                       : WrongLengths(trace, noise, random);
}

double TauOf(const Trace& trace, const std::vector<std::uint32_t>& forecasts) {
  const std::size_t count = std::min(forecasts.size(), kMostPairs);
  std::int64_t agree = 0;
  std::uint64_t in_forecasts = 0;  // pairs that differ
  std::uint64_t in_lengths = 0;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const int forecast = Sign(forecasts[i], forecasts[j]);
      const int length = Sign(trace.requests[i].output_tokens, trace.requests[j].output_tokens);
      agree += forecast * length;
      in_forecasts += forecast != 0;
      in_lengths += length != 0;
    }
  }
  if (in_forecasts == 0 || in_lengths == 0) return 0;
  return static_cast<double>(agree) /
         std::sqrt(static_cast<double>(in_forecasts) * static_cast<double>(in_lengths));
}

}  // namespace penstock::sim
