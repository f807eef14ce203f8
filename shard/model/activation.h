// The activations of MLPs.
#pragma once

#include <cstdint>

namespace penstock::shard {

enum class Activation : std::uint8_t {
  kSilu,         // x * sigmoid(x)
  kGelu,         // x * Phi(x), where Phi is the normal distribution
  kGeluTanh,     // the same with Phi approximated by tanh
  kRelu,         // max(x, 0)
  kReluSquared,  // max(x, 0)^2
};

}  // namespace penstock::shard
