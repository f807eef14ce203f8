// Numbers and JSON as Penstock's programs print them: decimals without an exponent.
#pragma once

#include <boost/json/value.hpp>
#include <string>

namespace penstock {

// The shortest decimal that reads back as `value`: 350.28, 0.25, 3. Only above 1e21 and below 1e-12
// it has an exponent. `digits` above 0 rounds to this many significant digits first.
std::string NumberText(double value, int digits = 0);

// Compact JSON. A whole double keeps a decimal point (3.0); NaN and infinity become null.
std::string JsonText(const boost::json::value& value);

}  // namespace penstock
