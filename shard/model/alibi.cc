#include "shard/model/alibi.h"

#include <bit>
#include <cmath>

namespace penstock::shard {

std::vector<float> BloomSlopes(std::uint32_t heads) {
  const std::uint32_t below = std::bit_floor(heads);
  const auto base = [](std::uint32_t count) { return static_cast<float>(std::exp2(-8.0 / count)); };
  std::vector<float> slopes;
  for (std::uint32_t i = 1; i <= below; ++i) {
    slopes.push_back(static_cast<float>(std::pow(double{base(below)}, i)));
  }
  for (std::uint32_t i = 1; slopes.size() < heads; i += 2) {
    slopes.push_back(static_cast<float>(std::pow(double{base(2 * below)}, i)));
  }
  return slopes;
}

std::vector<float> MptSlopes(std::uint32_t heads) {
  const std::uint32_t above = std::bit_ceil(heads);
  const auto slope = [&](std::uint32_t index) {
    const double exponent = 8.0 * (index + 1) / above;
    return static_cast<float>(std::exp2(-exponent));
  };
  std::vector<float> slopes;
  for (std::uint32_t i = 0; i < heads; ++i) {
    const std::uint32_t odd = 2 * i + 1;
    slopes.push_back(slope(above == heads ? i : odd < above ? odd : odd - above - 1));
  }
  return slopes;
}

}  // namespace penstock::shard
