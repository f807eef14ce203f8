#include "router/api/json/fields.h"

#include <cmath>

#include "router/api/json/schema.h"

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

std::string_view SchemaOfKind(std::string_view expected) {
  if (expected == "a string") return "{\"type\":\"string\"}";
  if (expected == "a boolean") return "{\"type\":\"boolean\"}";
  if (expected == "a sequence") return "{\"type\":\"array\",\"items\":{}}";
  if (expected == "f32") return "{\"type\":\"number\",\"format\":\"float\"}";
  if (expected == "i32") return "{\"type\":\"integer\",\"format\":\"int32\"}";
  if (expected == "u32" || expected == "u64" || expected == "usize") {
    return "{\"type\":\"integer\",\"minimum\":0}";
  }
  if (expected == "struct GenerateParameters") {
    return "{\"$ref\":\"#/components/schemas/GenerateParameters\"}";
  }
  return "{}";
}

namespace internal {

bool CheckMissing(Reader& reader, std::string_view name, bool required, bool seen) {
  if (!required || seen) return true;
  return reader.FailObject("missing field `" + std::string(name) + "`");
}

bool FailShort(Reader& reader, std::size_t length, std::string_view type, std::size_t fields) {
  return reader.FailObject("invalid length " + std::to_string(length) + ", expected " +
                           std::string(type) + " with " + std::to_string(fields) + " elements");
}

}  // namespace internal
}  // namespace penstock::router::json
