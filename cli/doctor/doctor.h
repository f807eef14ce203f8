// `penstock doctor [MODEL] [--url URL]`: why a start or a request does not work.
#pragma once

#include "cli/words.h"

namespace penstock::cli {

// Prints a line for each check. 0: no problem; 1: a problem.
int Doctor(Words words);

}  // namespace penstock::cli
