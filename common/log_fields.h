// Log records with fields besides the message. JSON records contain the fields; text records show
// the message alone.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

namespace penstock::log {

struct Field {
  std::string_view name;  // no quotes or control characters
  std::variant<std::string_view, std::int64_t, double> value;
};

void Info(std::string_view message, std::span<const Field> fields);

}  // namespace penstock::log
