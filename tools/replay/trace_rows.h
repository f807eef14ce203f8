// The option rows of `penstock-replay trace` and `search`.
#pragma once

#include <span>

#include "common/options/spec.h"

namespace penstock::replay {

std::span<const options::OptionSpec> TraceRows();

}  // namespace penstock::replay
