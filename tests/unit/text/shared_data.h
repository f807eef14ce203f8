// Reads the shared test data.
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <string_view>

#include "tests/unit/support/paths.h"

namespace penstock::text {

std::string ReadFile(const std::string& path);
boost::json::value ReadJson(const std::string& path);

// A string of a JSON value, as std::string.
std::string Text(const boost::json::value& value);

}  // namespace penstock::text
