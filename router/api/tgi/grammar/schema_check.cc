#include "router/api/tgi/grammar/schema_check.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace penstock::router::tgi {
namespace {

using json::Number;
using json::Value;

enum class Shape : std::uint8_t {
  kSchema,
  kSchemas,    // a list of them, not empty
  kSchemaMap,  // an object of them
  kTypes,      // the name of a type, or a list of names
  kStrings,
  kArray,
  kString,
  kNumber,
  kCount,
};

struct Rule {
  std::string_view keyword;
  Shape shape;
};

constexpr Rule kRules[] = {
    {"$ref", Shape::kString},
    {"$defs", Shape::kSchemaMap},
    {"prefixItems", Shape::kSchemas},
    {"items", Shape::kSchema},
    {"contains", Shape::kSchema},
    {"additionalProperties", Shape::kSchema},
    {"properties", Shape::kSchemaMap},
    {"patternProperties", Shape::kSchemaMap},
    {"allOf", Shape::kSchemas},
    {"anyOf", Shape::kSchemas},
    {"oneOf", Shape::kSchemas},
    {"not", Shape::kSchema},
    {"type", Shape::kTypes},
    {"enum", Shape::kArray},
    {"maximum", Shape::kNumber},
    {"minimum", Shape::kNumber},
    {"maxLength", Shape::kCount},
    {"minLength", Shape::kCount},
    {"pattern", Shape::kString},
    {"maxItems", Shape::kCount},
    {"minItems", Shape::kCount},
    {"maxProperties", Shape::kCount},
    {"minProperties", Shape::kCount},
    {"required", Shape::kStrings},
    {"description", Shape::kString},
    {"format", Shape::kString},
    {"definitions", Shape::kSchemaMap},
};

constexpr std::string_view kTypeNames[] = {"array",  "boolean", "integer", "null",
                                           "number", "object",  "string"};

using Found = std::optional<std::string>;

Found CheckKind(const Value& value, Value::Kind kind, std::string_view type) {
  if (value.is(kind)) return std::nullopt;
  return json::ToText(value) + " is not of type \"" + std::string(type) + "\"";
}

bool IsTypeName(const Value& value) {
  return value.is(Value::Kind::kString) &&
         std::ranges::find(kTypeNames, value.text) != std::end(kTypeNames);
}

template <class CheckOne>
Found CheckElements(const Value& value, const CheckOne& check) {
  if (Found found = CheckKind(value, Value::Kind::kArray, "array")) return found;
  for (const Value& element : value.elements) {
    if (Found found = check(element)) return found;
  }
  return std::nullopt;
}

Found CheckSchemaMap(const Value& value) {
  if (Found found = CheckKind(value, Value::Kind::kObject, "object")) return found;
  for (const Value::Member& member : value.members) {
    if (Found found = FindSchemaError(member.second)) return found;
  }
  return std::nullopt;
}

Found CheckTypes(const Value& value) {
  const bool list = !value.elements.empty() && std::ranges::all_of(value.elements, IsTypeName);
  if (list || IsTypeName(value)) return std::nullopt;
  return json::ToText(value) +
         " is not valid under any of the schemas listed in the 'anyOf' keyword";
}

Found CheckCount(const Value& value) {
  const Number& number = value.number;
  const bool integer = value.is(Value::Kind::kNumber) && number.value == std::trunc(number.value);
  if (!integer) return json::ToText(value) + " is not of type \"integer\"";
  if (number.value < 0) return json::ToText(value) + " is less than the minimum of 0";
  return std::nullopt;
}

Found Check(const Value& value, Shape shape) {
  switch (shape) {
    case Shape::kSchema:
      return FindSchemaError(value);
    case Shape::kSchemas:
      if (value.is(Value::Kind::kArray) && value.elements.empty()) return "[] has less than 1 item";
      return CheckElements(value, FindSchemaError);
    case Shape::kSchemaMap:
      return CheckSchemaMap(value);
    case Shape::kTypes:
      return CheckTypes(value);
    case Shape::kStrings:
      return CheckElements(value, [](const Value& element) {
        return CheckKind(element, Value::Kind::kString, "string");
      });
    case Shape::kArray:
      return CheckKind(value, Value::Kind::kArray, "array");
    case Shape::kString:
      return CheckKind(value, Value::Kind::kString, "string");
    case Shape::kNumber:
      return CheckKind(value, Value::Kind::kNumber, "number");
    case Shape::kCount:
      break;
  }
  return CheckCount(value);
}

}  // namespace

std::optional<std::string> FindSchemaError(const Value& schema) {
  if (schema.is(Value::Kind::kBool)) return std::nullopt;
  if (!schema.is(Value::Kind::kObject)) {
    return json::ToText(schema) + " is not of types \"boolean\", \"object\"";
  }
  for (const Rule& rule : kRules) {
    const Value* value = schema.Find(rule.keyword);
    if (value == nullptr) continue;
    if (Found found = Check(*value, rule.shape)) return found;
  }
  return std::nullopt;
}

}  // namespace penstock::router::tgi
