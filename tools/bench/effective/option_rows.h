// The options table of penstock-bench effective.
#pragma once

#include <span>

#include "common/options/spec.h"

namespace penstock::bench::effective {

std::span<const options::OptionSpec> OptionRows();

}  // namespace penstock::bench::effective
