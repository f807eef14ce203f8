#include "scheduler/admission/output_lengths.h"

#include <algorithm>
#include <bit>

namespace penstock::scheduler {

std::uint32_t OutputLengths::TableValue(const Arrival& request) {
  const std::uint32_t most = request.max_new_tokens;
  if (request.length_given) return most - most / 4;
  const std::uint32_t cap = request.request_class == RequestClass::kOpenAiChat ? 512 : 256;
  return std::clamp(most / 4, 1u, cap);
}

std::size_t OutputLengths::ClassOf(const Arrival& request) {
  return 2 * static_cast<std::size_t>(request.request_class) + (request.length_given ? 1 : 0);
}

// With a given length: the used share in sixteenths, rounded up, 1 to 16. Otherwise: lengths below
// 8 have a bucket each, and each octave above has four.
std::size_t OutputLengths::BucketOf(const Arrival& request, std::uint32_t length) {
  if (request.length_given) {
    const std::uint64_t most = std::max(request.max_new_tokens, 1u);
    return static_cast<std::size_t>(
        (std::uint64_t{std::min(length, request.max_new_tokens)} * 16 + most - 1) / most);
  }
  if (length < 8) return length;
  const int octave = std::bit_width(length) - 1;  // >= 3
  return 8 + 4 * static_cast<std::size_t>(octave - 3) + ((length >> (octave - 2)) & 3u);
}

std::uint32_t OutputLengths::LengthOf(const Arrival& request, std::size_t bucket) {
  std::uint64_t length = bucket;
  if (request.length_given) {
    length = (std::uint64_t{request.max_new_tokens} * bucket) / 16;
  } else if (bucket >= 8) {
    const std::size_t octave = 3 + (bucket - 8) / 4;
    const std::uint64_t quarter = (bucket - 8) % 4;
    length = ((5 + quarter) << (octave - 2)) - 1;
  }
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(length, request.max_new_tokens));
}

std::uint32_t OutputLengths::Expect(const Arrival& request, std::uint32_t generated) const {
  const std::uint32_t most = request.max_new_tokens;
  const std::uint32_t least = std::min(most, generated + 1);
  // An output that is longer than the guess is expected to grow by a quarter.
  const auto guess = [=](std::uint32_t tokens) {
    const std::uint64_t longer = std::uint64_t{generated} + generated / 4;
    const std::uint64_t expected = tokens > generated ? tokens : longer;
    return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(expected, least, most));
  };
  if (request.predicted_tokens > 0) return guess(request.predicted_tokens);
  const Histogram& seen = classes_[ClassOf(request)];
  if (seen.total < kEnough) return guess(TableValue(request));
  const std::size_t first = BucketOf(request, least);
  std::uint64_t longer = 0;
  for (std::size_t i = first; i < kBuckets; ++i) longer += seen.counts[i];
  if (longer == 0) return most;  // longer than all outputs so far
  std::uint64_t below = 0;
  for (std::size_t i = first; i < kBuckets; ++i) {
    below += seen.counts[i];
    if (below * 100 >= longer * kPercent) return std::clamp(LengthOf(request, i), least, most);
  }
  return most;
}

void OutputLengths::Learn(const Arrival& request, std::uint32_t generated) {
  Histogram& seen = classes_[ClassOf(request)];
  ++seen.counts[BucketOf(request, generated)];
  if (++seen.total < kForget) return;
  seen.total = 0;
  for (std::uint32_t& count : seen.counts) seen.total += count /= 2;
}

}  // namespace penstock::scheduler
