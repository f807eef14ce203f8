// The tools of a request.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "router/json/value.h"

namespace penstock::router::answer {

// JSON types that a parameter may have, as bits.
using ParameterTypes = std::uint8_t;
inline constexpr ParameterTypes kString = 1, kNumber = 2, kBoolean = 4, kNull = 8, kArray = 16,
                                kObject = 32, kAnyType = 63;

struct Tool {
  std::string name;
  std::string parameters_json;  // the schema as the client wrote it; empty if there is none
  bool strict = false;
  std::size_t index = 0;   // in the client's array
  json::Value parameters;  // the same, read; null if there is none

  // The types of `parameter` by the schema. kAnyType if the schema does not say.
  ParameterTypes TypesOf(std::string_view parameter) const;
};

class ToolSet {
 public:
  ToolSet() = default;
  explicit ToolSet(std::vector<Tool> tools) : tools_(std::move(tools)) {}

  const std::vector<Tool>& tools() const { return tools_; }
  bool empty() const { return tools_.empty(); }
  // Null if there is no such tool.
  const Tool* Find(std::string_view name) const;

 private:
  std::vector<Tool> tools_;
};

inline constexpr std::size_t kMaxTools = 256;
inline constexpr std::size_t kMaxToolNameBytes = 256;

// OpenAI's array: [{"type": "function", "function": {"name", "description", "parameters",
// "strict"}}]. Names must be unique and not empty. An error says what is wrong where, without the
// name of the array: "[1].function.name must …".
absl::StatusOr<ToolSet> ParseTools(std::string_view tools_json);

}  // namespace penstock::router::answer
