#include "router/json/fields.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "router/json/schema.h"

namespace penstock::router::json {

bool ReadInteger(Reader& reader, std::int64_t least, std::uint64_t greatest, std::uint64_t& bits,
                 std::string_view expected) {
  Number number;
  if (!reader.ReadNumber(number, expected)) return false;
  if (number.kind == Number::Kind::kFloat) {
    const bool integral =
        reader.limits().integral_floats && number.value == std::trunc(number.value);
    if (!integral) return reader.FailType(Describe(number), expected);
    // Below 2^53 in size every integral double is exact.
    if (std::fabs(number.value) > 9007199254740992.0) {
      return reader.FailValue(Describe(number), expected);
    }
    const auto whole = static_cast<std::int64_t>(number.value);
    number.kind = whole < 0 ? Number::Kind::kNegative : Number::Kind::kUnsigned;
    number.negative = whole;
    number.magnitude = static_cast<std::uint64_t>(whole);
  }
  if (number.kind == Number::Kind::kNegative) {
    if (number.negative < least) return reader.FailValue(Describe(number), expected);
    bits = static_cast<std::uint64_t>(number.negative);
    return true;
  }
  if (number.magnitude > greatest) return reader.FailValue(Describe(number), expected);
  bits = number.magnitude;
  return true;
}

bool ReadValue(Reader& reader, float& out, std::string_view expected) {
  Number number;
  if (!reader.ReadNumber(number, expected)) return false;
  out = static_cast<float>(number.value);
  return true;
}

std::string SchemaOfKind(std::string_view expected, std::string_view element) {
  constexpr std::pair<std::string_view, std::string_view> kSchemas[] = {
      {"a string", R"({"type":"string"})"},
      {"a boolean", R"({"type":"boolean"})"},
      {"a boolean or \"never\"", R"({"anyOf":[{"type":"boolean"},{"enum":["never"]}]})"},
      {"f32", R"({"type":"number","format":"float"})"},
      {"a number", R"({"type":"number"})"},
      {"i32", R"({"type":"integer","format":"int32"})"},
      {"u32", R"({"type":"integer","minimum":0})"},
      {"u64", R"({"type":"integer","minimum":0})"},
      {"usize", R"({"type":"integer","minimum":0})"},
      {"an integer", R"({"type":"integer"})"},
      {"a whole number", R"({"type":"integer"})"},
      {"an integer that is not negative", R"({"type":"integer","minimum":0})"},
      {"milliseconds since 1970 as an integer", R"({"type":"integer","minimum":0})"},
      {"a positive integer", R"({"type":"integer","minimum":1})"},
      {"an integer from 1", R"({"type":"integer","minimum":1})"},
      {"an object", R"({"type":"object"})"},
      {"an object of token ids and biases",
       R"({"type":"object","additionalProperties":{"type":"number"}})"},
      {"an array", R"({"type":"array","items":{"type":"object"}})"},
      {"a string, an array of strings or of token ids",
       R"({"anyOf":[{"type":"string"},{"type":"array","items":{}}]})"},
      {"a string or a list",
       R"({"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]})"},
      {"a string or an array of blocks",
       R"({"anyOf":[{"type":"string"},{"type":"array","items":{"type":"object"}}]})"},
      {"adjacently tagged enum GrammarType", R"({"$ref":"#/components/schemas/GrammarType"})"},
      {"a tool choice", R"({"anyOf":[{"type":"string"},{"type":"object"}]})"},
      {"a boolean or a string", R"({"anyOf":[{"type":"boolean"},{"type":"string"}]})"},
      {"a string or an object", R"({"anyOf":[{"type":"string"},{"type":"object"}]})"},
      {"a string or an array of strings",
       R"({"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]})"},
      {"a string or a list of strings",
       R"({"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]})"},
  };
  const auto* found =
      std::ranges::find(kSchemas, expected, &std::pair<std::string_view, std::string_view>::first);
  if (found != std::end(kSchemas)) return std::string(found->second);
  if (!element.empty()) return "{\"type\":\"array\",\"items\":" + SchemaOfKind(element) + "}";
  if (expected.starts_with("struct ")) {
    return "{\"$ref\":\"#/components/schemas/" + std::string(expected.substr(7)) + "\"}";
  }
  return "{}";
}

}  // namespace penstock::router::json
