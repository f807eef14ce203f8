// Loads that independent draws rarely give: many requests of one kind that meet. Each function
// draws from numbers of its own whether the scenario has it.
#pragma once

#include "sim/scenario.h"

namespace penstock::sim {

// Requests with equal beginnings arrive together. Prompts take several steps, and some requests are
// cancelled meanwhile: others wait for the prefix that those compute. Most of these groups have
// recurrent layers and few snapshots.
void DrawSharedStarts(Scenario& scenario);

// Optimistic admission where outputs are long, so that their expected lengths decide who runs:
// without a given length texts of thousands of tokens may follow, else the used share counts.
void DrawExpectedLengths(Scenario& scenario);

}  // namespace penstock::sim
