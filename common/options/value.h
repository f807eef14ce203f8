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

// An amount of memory. Exactly one of the two is above zero.
struct MemoryAmount {
  std::int64_t bytes = 0;
  double share = 0;  // of the free memory, in (0, 1]
};

struct Auto {};

using Parsed = std::variant<std::monostate, Auto, bool, std::int64_t, double, std::string,
                            std::vector<std::string>, MemoryAmount, std::chrono::nanoseconds>;

// Parses `text` as a value of the row. An error says what is accepted ("must be an integer from 0
// to 65535"), without the name of the option. Empty text is an error.
absl::StatusOr<Parsed> ParseValue(const OptionSpec& spec, std::string_view text);

// Uses the largest exact unit: "8GiB" for 8589934592.
std::string FormatBytes(std::int64_t bytes);

}  // namespace penstock::options
