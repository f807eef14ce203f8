// Numbers of the command line.
#pragma once

#include <charconv>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <string_view>
#include <system_error>

// The number in `text`; `name` is the argument's. If it is none, prints so and ends the program.
template <class Number>
Number ParseNumber(std::string_view name, std::string_view text, Number least) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && number >= least) return number;
  std::cerr << name << " " << text << ": must be an integer from " << least << " to "
            << std::numeric_limits<Number>::max() << "\n";
  std::exit(2);
}
