// --help of the programs that measure, and the refusal of unknown options. Most of their arguments
// have no names.
#pragma once

#include <algorithm>
#include <cstdio>
#include <initializer_list>
#include <optional>
#include <string_view>

namespace penstock::bench {

// The exit code if the arguments end the program: 0 after --help, which prints `usage`, 2 after an
// option that is not among `known`.
inline std::optional<int> ExitOfArguments(int argc, const char* const* argv, const char* usage,
                                          std::initializer_list<std::string_view> known = {}) {
  const char* const* const end = argv + argc;
  const auto asks = [](std::string_view text) { return text == "--help" || text == "-h"; };
  if (std::any_of(argv + 1, end, asks)) {
    std::fputs(usage, stdout);
    return 0;
  }
  const auto* const unknown = std::find_if(argv + 1, end, [known](std::string_view text) {
    return text.starts_with('-') && text.size() > 1 && std::ranges::count(known, text) == 0;
  });
  if (unknown == end) return std::nullopt;
  std::fprintf(stderr, "error: %s: unknown option\n\n%s", *unknown, usage);
  return 2;
}

}  // namespace penstock::bench
