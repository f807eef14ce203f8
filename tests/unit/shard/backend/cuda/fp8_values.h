// The values of e4m3, computed from their definition.
#pragma once

#include <cmath>
#include <cstdint>

namespace penstock::shard::cuda {

// Not for the codes of NaN, 0x7f and 0xff.
inline float Fp8Value(std::uint8_t code) {
  const int exponent = code >> 3 & 15;
  const int mantissa = code & 7;
  const float size = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                   : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return code & 0x80 ? -size : size;
}

}  // namespace penstock::shard::cuda
