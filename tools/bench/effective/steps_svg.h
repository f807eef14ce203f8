// Some steps of each mode as a picture.
#pragma once

#include <string>
#include <vector>

#include "tools/bench/effective/timeline_svg.h"

namespace penstock::bench::effective {

// Consecutive steps, from the same moment of the trace in each mode. A column is a step, a row is a
// request, and a cell says that the request was in the step. The moment is the begin of a static
// batch, if possible one of several requests. Among those it is the moment at which the modes run
// the most requests.
std::string StepsSvg(const std::vector<ModeTimeline>& modes);

}  // namespace penstock::bench::effective
