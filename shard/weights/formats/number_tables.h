// The values of small number types by their bits.
#pragma once

#include <array>

namespace penstock::shard {

using ByteTable = std::array<float, 256>;

const ByteTable& E4m3Table();     // of F8_E4M3; 0x7f and 0xff are not numbers
const ByteTable& E8m0Table();     // powers of two, as the exponent plus 127; 255 is not a number
const ByteTable& Int8Table();     // two's complement
const ByteTable& Offset8Table();  // plus 128

// Sixteen values of E2M1, and of integers plus 8.
inline constexpr std::array<float, 16> kE2m1 = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,
                                                4.0f,  6.0f,  -0.0f, -0.5f, -1.0f, -1.5f,
                                                -2.0f, -3.0f, -4.0f, -6.0f};
inline constexpr std::array<float, 16> kOffset4 = {-8, -7, -6, -5, -4, -3, -2, -1,
                                                   0,  1,  2,  3,  4,  5,  6,  7};

}  // namespace penstock::shard
