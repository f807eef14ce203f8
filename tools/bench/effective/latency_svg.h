// Pictures of the latency by requested tokens.
#pragma once

#include <string>

#include "tools/bench/effective/report.h"

namespace penstock::bench::effective {

// All modes in one panel.
std::string LatencySvg(const Report& report);
// A panel per mode, each with its own scale and its line.
std::string LatencyByModeSvg(const Report& report);
// What a point and the shade in them are.
std::string LatencyCaption(const Report& report);

}  // namespace penstock::bench::effective
