// The option rows of penstock-plan.
#pragma once

#include <span>

#include "common/options/spec.h"

namespace penstock::plan {

std::span<const options::OptionSpec> PlanRows();

}  // namespace penstock::plan
