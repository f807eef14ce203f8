// --help of the programs that measure, and the refusal of unknown options and of numbers that are
// none. Most of their arguments have no names.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

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

// The number in `text`; `name` is the argument's. If it is none, says so and ends the program
// with 2.
template <class Number>
Number NumberArgument(std::string_view name, std::string_view text, Number least = 1) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && number >= least) return number;
  std::fprintf(stderr, "error: %s %s: must be an integer from %s to %s\n",
               std::string(name).c_str(), std::string(text).c_str(), std::to_string(least).c_str(),
               std::to_string(std::numeric_limits<Number>::max()).c_str());
  std::exit(2);
}

}  // namespace penstock::bench
