// Options of penstock-simshard as the engines want them.
#pragma once

#include <memory>
#include <vector>

#include "common/options/values.h"
#include "shard/service/step_engine.h"

namespace penstock::simshard {

// One engine for --rank when it is given, else one for each rank of --world-size.
std::vector<std::unique_ptr<shard::StepEngine>> MakeEngines(const options::Values& values);

}  // namespace penstock::simshard
