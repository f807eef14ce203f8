// Forecasts of output lengths with a stated error, as a trained model would give them.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/trace/trace.h"

namespace penstock::sim {

// How the error enters a forecast. Each request has its own z, with mean 0 and variance 1: the sum
// of twelve uniform numbers, minus 6.
enum class ForecastError : std::uint8_t {
  kLength,  // the forecast is the true length times e^(noise * z)
  // Requests are sorted by rank / number of requests + noise * z. The forecast of the n-th is the
  // n-th shortest of the true lengths. So errors are as frequent among short as among long outputs.
  kRank,
};

// One for each request, at least 1.
std::vector<std::uint32_t> Forecasts(const Trace& trace, ForecastError error, double noise,
                                     std::uint64_t seed);

// Kendall's tau-b of the forecasts and the true lengths of at most 4,000 requests, in [-1, 1]. 0 if
// all forecasts or all lengths are equal.
double TauOf(const Trace& trace, const std::vector<std::uint32_t>& forecasts);

}  // namespace penstock::sim
