// The shortest decimal of a binary32 of usual size, as in a token's logprob, of which thousands are
// written per second: what std::to_chars gives in its fixed notation, in less than half of the
// instructions, since the bounds of its digits fit 64 bits here.
//
// Method: of the numbers between the middles to both neighbours, all of which read back as the
// value, the one with the fewest decimals; of several the nearest. Compare R. Giulietti, "The
// Schubfach way to render doubles", which does so for all sizes.
#pragma once

#include <cstddef>
#include <string>

namespace penstock::router::json {

// Room for the longest, and for what is written behind it on the way.
inline constexpr std::size_t kPlainFloatBytes = 24;

// Gives the end of what was written at `at`. Null: a size for which this is not made (below 2^-13,
// from 2^19 on, some powers of two, zero, not a number).
char* WritePlainFloat(char* at, float value);
// False, and `out` as it was, where the other gives null.
bool AppendPlainFloat(std::string& out, float value);

}  // namespace penstock::router::json
