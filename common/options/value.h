// One value of an option: its text checked against its row and turned into a typed value.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "common/options/spec.h"

namespace penstock::options {

// An amount of memory as the user gave it: exactly one of the two is above zero.
struct MemoryAmount {
  std::int64_t bytes = 0;
  double share = 0;  // of the free memory, in (0, 1]
};

struct Auto {};

using Parsed = std::variant<std::monostate, Auto, bool, std::int64_t, double, std::string,
                            std::vector<std::string>, MemoryAmount, std::chrono::nanoseconds>;

// Checks `text` against the row. The error says what is accepted ("must be an integer from 0 to
// 65535"), not which option it was. Empty text is an error: an option is unset by leaving it away.
absl::StatusOr<Parsed> ParseValue(const OptionSpec& spec, std::string_view text);

// "8GiB" for 8589934592, the largest unit that loses nothing.
std::string FormatBytes(std::int64_t bytes);

}  // namespace penstock::options
