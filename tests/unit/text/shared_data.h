// Optional test inputs: real tokenizers, templates and goldens, found through PENSTOCK_SHARED_DATA
// (default: shared/data beside the repository). Tests skip where they are absent.
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <string_view>

namespace penstock::text {

// The path of a file or folder of the shared data, or empty when it is not there.
std::string SharedData(const std::string& relative);

std::string ReadFile(const std::string& path);
boost::json::value ReadJson(const std::string& path);

// A string of a JSON value, as std::string.
std::string Text(const boost::json::value& value);

}  // namespace penstock::text

// Ends the test as skipped when `relative` is absent; else defines `path`.
#define PENSTOCK_SHARED_OR_SKIP(path, relative)                            \
  const std::string path = ::penstock::text::SharedData(relative);         \
  if (path.empty()) {                                                      \
    GTEST_SKIP() << "shared data " << (relative)                           \
                 << " is absent (set PENSTOCK_SHARED_DATA to its folder)"; \
  }
