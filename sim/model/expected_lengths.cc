#include "sim/model/expected_lengths.h"

#include <algorithm>

namespace penstock::sim {
namespace {

using scheduler::Arrival;

constexpr std::size_t kEnough = 32;

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
  const bool known = seen != seen_.end() && seen->second.size() >= kEnough;
  if (request.predicted_tokens > 0 || !known) {
    std::uint32_t guess =
        request.predicted_tokens > 0 ? request.predicted_tokens : FromTable(request);
    if (guess <= generated) guess = generated + generated / 4;
    return std::clamp(guess, least, most);
  }
  std::vector<std::uint32_t> longer;
  for (const std::uint32_t each : seen->second) {
    if (each >= Measure(request, least)) longer.push_back(each);
  }
  if (longer.empty()) return most;
  std::sort(longer.begin(), longer.end());
  const std::uint32_t quantile = longer[(longer.size() * 80 + 99) / 100 - 1];
  const std::uint32_t length = request.length_given ? most * quantile / 16 : quantile;
  return std::clamp(length, least, most);
}

void ExpectedLengths::Learn(const Arrival& request, std::uint32_t generated) {
  seen_[{request.request_class, request.length_given}].push_back(Measure(request, generated));
}

}  // namespace penstock::sim
