// The slopes of linear biases (ALiBi, arXiv:2108.12409), one for each query head of all ranks.
#pragma once

#include <cstdint>
#include <vector>

namespace penstock::shard {

// With a number of heads that is no power of two, BLOOM takes the slopes of the power below and
// fills up from those of the power above; MPT takes those of the power above in another order.
// Exponents end at 8: transformers does not read `alibi_bias_max` of an MPT model.
std::vector<float> BloomSlopes(std::uint32_t heads);
std::vector<float> MptSlopes(std::uint32_t heads);

}  // namespace penstock::shard
