// Logging as --log-level and --log-format say.
#pragma once

#include <string_view>

#include "common/options/values.h"

namespace penstock::options {

// Whether --log-format json or --json-output is set. False for a program without a log.
bool LogsJson(const Values& values);

// Every line names `component` ("router", "shard-0"). Call it once in main, before other threads
// log.
void ConfigureLog(const Values& values, std::string_view component);

}  // namespace penstock::options
