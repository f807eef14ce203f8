// The batch timeline as a picture; effective-batching shows it as an animation.
#pragma once

#include <string>
#include <vector>

#include "tools/bench/effective/timeline.h"

namespace penstock::bench::effective {

struct ModeTimeline {
  std::string mode;
  BatchTimeline timeline;
};

// Modes one below the other on one time axis: a line per request (waiting, prompt, decoding), and
// below each mode how many requests were in each step.
std::string TimelineSvg(const std::vector<ModeTimeline>& modes);

}  // namespace penstock::bench::effective
