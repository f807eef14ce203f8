// --help of the programs that measure. Their arguments have no names.
#pragma once

#include <cstdio>
#include <string_view>

namespace penstock::bench {

// Prints `usage` if an argument asks for it. The caller then ends with success.
inline bool PrintedHelp(int argc, const char* const* argv, const char* usage) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument != "--help" && argument != "-h") continue;
    std::fputs(usage, stdout);
    return true;
  }
  return false;
}

}  // namespace penstock::bench
