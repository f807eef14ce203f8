// The page that shows the results of a comparison.
#pragma once

#include <string>

#include "tools/bench/effective/report.h"

namespace penstock::bench::effective {

// HTML that refers to the pictures beside it.
std::string ToPage(const Report& report);

}  // namespace penstock::bench::effective
