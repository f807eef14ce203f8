#include "sim/model/expected_lengths.h"

#include <algorithm>

namespace penstock::sim {
namespace {

using scheduler::Arrival;

constexpr std::uint32_t kEnough = 32;
constexpr std::uint32_t kMost = 4096;

std::uint32_t Sum(const std::map<std::uint32_t, std::uint32_t>& counts) {
  std::uint32_t sum = 0;
  for (const auto& [length, count] : counts) sum += count;
  return sum;
}

std::uint32_t Measure(const Arrival& request, std::uint32_t length) {
  const std::uint32_t most = request.max_new_tokens;
  if (request.length_given) return (std::min(length, most) * 16 + most - 1) / most;
  std::uint32_t width = 1;  // four steps for each octave from 8 on
  while (width * 8 <= length) width *= 2;
  return (length / width + 1) * width - 1;
}

std::uint32_t FromTable(const Arrival& request) {
  const std::uint32_t most = request.max_new_tokens;
  if (request.length_given) return most - most / 4;
  const std::uint32_t cap = request.request_class == RequestClass::kOpenAiChat ? 512 : 256;
  return std::clamp(most / 4, 1u, cap);
}

}  // namespace

std::uint32_t ExpectedLengths::Expect(const Arrival& request, std::uint32_t generated) const {
  const std::uint32_t most = request.max_new_tokens;
  const std::uint32_t least = std::min(generated + 1, most);
  const auto seen = seen_.find({request.request_class, request.length_given});
  const bool known = seen != seen_.end() && Sum(seen->second) >= kEnough;
  if (request.predicted_tokens > 0 || !known) {
    std::uint32_t guess =
        request.predicted_tokens > 0 ? request.predicted_tokens : FromTable(request);
    if (guess <= generated) guess = generated + generated / 4;
    return std::clamp(guess, least, most);
  }
  Counts longer = seen->second;
  longer.erase(longer.begin(), longer.lower_bound(Measure(request, least)));
  if (Sum(longer) == 0) return most;
  std::uint32_t rest = (Sum(longer) * 80 + 99) / 100;  // at or below the quantile
  auto quantile = longer.begin();
  while (rest > quantile->second) rest -= (quantile++)->second;
  const std::uint32_t length = request.length_given ? most * quantile->first / 16 : quantile->first;
  return std::clamp(length, least, most);
}

void ExpectedLengths::Learn(const Arrival& request, std::uint32_t generated) {
  Counts& seen = seen_[{request.request_class, request.length_given}];
  ++seen[Measure(request, generated)];
  if (Sum(seen) < kMost) return;
  for (auto& [length, count] : seen) count /= 2;
}

}  // namespace penstock::sim
