// The outputs that docs/tools.md shows.
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "tests/unit/support/paths.h"

namespace penstock::router::answer::testing {

inline std::string ReadFile(const std::string& path) {
  std::ifstream file(testing_support::SourcePath(path));
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The block of code after the line that begins with the format's name; empty if there is none.
inline std::string ExampleOf(const std::string& page, std::string_view format) {
  const std::size_t line = page.find("\n`" + std::string(format) + "`");
  if (line == page.npos) return "";
  const std::size_t fence = page.find("\n```", line);
  const std::size_t begin = page.find('\n', fence + 1) + 1;
  const std::string close = "\n" + page.substr(fence + 1, begin - fence - 2) + "\n";
  return page.substr(begin, page.find(close, begin) - begin);
}

}  // namespace penstock::router::answer::testing
