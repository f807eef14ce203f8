// Logging as --log-level and --log-format say.
#pragma once

#include <string_view>

#include "common/options/values.h"

namespace penstock::options {

// Every line names `component` ("router", "shard-0"). Call it once in main, before other threads
// log.
void ConfigureLog(const Values& values, std::string_view component);

}  // namespace penstock::options
