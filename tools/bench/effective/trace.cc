#include "tools/bench/effective/trace.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <random>

namespace penstock::bench::effective {
namespace {

constexpr std::uint32_t kBurst = 5;
constexpr std::uint32_t kMostBucket = 145;
constexpr std::uint32_t kBucketStep = 5;
constexpr std::uint32_t kCopies = 10;
constexpr double kReadmeMean = 100;
constexpr double kReadmeDeviation = 50;
constexpr std::uint32_t kReadmeMost = 200;

// The standard library's distributions differ between implementations; a trace must not.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t Bits() { return engine_(); }
  double Unit() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }  // [0, 1)
  std::size_t Below(std::size_t bound) {
    return static_cast<std::size_t>(Unit() * static_cast<double>(bound));
  }
  double Normal() {
    const double radius = std::sqrt(-2 * std::log(1 - Unit()));
    return radius * std::cos(2 * std::numbers::pi * Unit());
  }

 private:
  std::mt19937_64 engine_;
};

// The lengths of the recorded runs, shuffled again for each 290 requests.
std::uint32_t NextBucket(Random& random, std::vector<std::uint32_t>& left) {
  if (left.empty()) {
    for (std::uint32_t n = kBucketStep; n <= kMostBucket; n += kBucketStep) {
      left.insert(left.end(), kCopies, n);
    }
  }
  std::swap(left[random.Below(left.size())], left.back());
  const std::uint32_t taken = left.back();
  left.pop_back();
  return taken;
}

std::uint32_t NextNormal(Random& random) {
  while (true) {
    const double drawn = std::ceil(kReadmeMean + kReadmeDeviation * random.Normal());
    if (drawn >= 1 && drawn <= kReadmeMost) return static_cast<std::uint32_t>(drawn);
  }
}

std::vector<std::uint32_t> Lengths(const TraceShape& shape, Random& random) {
  std::vector<std::uint32_t> lengths(shape.samples);
  std::vector<std::uint32_t> left;
  std::vector<std::uint32_t> range = shape.num_tokens;
  if (range.empty() && shape.preset == Preset::kHead) range = {1, 25, 100};
  for (std::uint32_t& length : lengths) {
    if (!range.empty()) {
      length = range[random.Below(range.size())];
    } else {
      length = shape.preset == Preset::kRecorded ? NextBucket(random, left) : NextNormal(random);
    }
  }
  if (shape.selection == Selection::kDescend) std::ranges::sort(lengths, std::greater());
  return lengths;
}

// Gaps are uniform from 0 to twice the mean.
std::vector<double> Arrivals(const TraceShape& shape, Random& random) {
  const std::uint32_t burst = shape.preset == Preset::kRecorded ? kBurst : 1;
  const double longest_gap = 2 * burst / RateOf(shape);
  std::vector<double> arrivals;
  double now = 0;
  for (std::uint32_t i = 0; i < shape.samples; ++i) {
    arrivals.push_back(now);
    if ((i + 1) % burst == 0) now += longest_gap * random.Unit();
  }
  return arrivals;
}

}  // namespace

double RateOf(const TraceShape& shape) {
  if (shape.rate > 0) return shape.rate;
  if (shape.preset == Preset::kReadme) return 1;
  return shape.preset == Preset::kRecorded ? 2 : 2 / shape.wait;
}

std::vector<TraceRequest> MakeTrace(const TraceShape& shape) {
  Random random(shape.seed);
  const std::vector<std::uint32_t> lengths = Lengths(shape, random);
  const std::vector<double> arrivals = Arrivals(shape, random);
  std::vector<TraceRequest> trace;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    trace.push_back({arrivals[i], "Request " + std::to_string(i), lengths[i], random.Bits() >> 12});
  }
  return trace;
}

}  // namespace penstock::bench::effective
