#include "router/api/tgi/schema_check.h"

#include <algorithm>
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
  kTypes,      // a type's name, or a list of such
  kStrings,
  kArray,
  kString,
  kBoolean,
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
    {"$comment", Shape::kString},
    {"prefixItems", Shape::kSchemas},
    {"items", Shape::kSchema},
    {"contains", Shape::kSchema},
    {"additionalProperties", Shape::kSchema},
    {"properties", Shape::kSchemaMap},
    {"patternProperties", Shape::kSchemaMap},
    {"dependentSchemas", Shape::kSchemaMap},
    {"propertyNames", Shape::kSchema},
    {"if", Shape::kSchema},
    {"then", Shape::kSchema},
    {"else", Shape::kSchema},
    {"allOf", Shape::kSchemas},
    {"anyOf", Shape::kSchemas},
    {"oneOf", Shape::kSchemas},
    {"not", Shape::kSchema},
    {"type", Shape::kTypes},
    {"enum", Shape::kArray},
    {"multipleOf", Shape::kNumber},
    {"maximum", Shape::kNumber},
    {"exclusiveMaximum", Shape::kNumber},
    {"minimum", Shape::kNumber},
    {"exclusiveMinimum", Shape::kNumber},
    {"maxLength", Shape::kCount},
    {"minLength", Shape::kCount},
    {"pattern", Shape::kString},
    {"maxItems", Shape::kCount},
    {"minItems", Shape::kCount},
    {"uniqueItems", Shape::kBoolean},
    {"maxContains", Shape::kCount},
    {"minContains", Shape::kCount},
    {"maxProperties", Shape::kCount},
    {"minProperties", Shape::kCount},
    {"required", Shape::kStrings},
    {"title", Shape::kString},
    {"description", Shape::kString},
    {"deprecated", Shape::kBoolean},
    {"readOnly", Shape::kBoolean},
    {"writeOnly", Shape::kBoolean},
    {"examples", Shape::kArray},
    {"format", Shape::kString},
};

constexpr std::string_view kTypeNames[] = {"array",  "boolean", "integer", "null",
                                           "number", "object",  "string"};

using Found = std::optional<std::string>;

std::string NotOfType(const Value& value, std::string_view type) {
  return json::ToText(value) + " is not of type \"" + std::string(type) + "\"";
}

bool IsTypeName(const Value& value) {
  return value.is(Value::Kind::kString) && std::find(std::begin(kTypeNames), std::end(kTypeNames),
                                                     value.text) != std::end(kTypeNames);
}

Found CheckKind(const Value& value, Value::Kind kind, std::string_view type) {
  if (value.is(kind)) return std::nullopt;
  return NotOfType(value, type);
}

Found CheckSchemas(const Value& value) {
  if (!value.is(Value::Kind::kArray)) return NotOfType(value, "array");
  if (value.elements.empty()) return json::ToText(value) + " has less than 1 item";
  for (const Value& element : value.elements) {
    if (Found found = FindSchemaError(element)) return found;
  }
  return std::nullopt;
}

Found CheckSchemaMap(const Value& value) {
  if (!value.is(Value::Kind::kObject)) return NotOfType(value, "object");
  for (const Value::Member& member : value.members) {
    if (Found found = FindSchemaError(member.second)) return found;
  }
  return std::nullopt;
}

Found CheckTypes(const Value& value) {
  const bool list = value.is(Value::Kind::kArray) && !value.elements.empty() &&
                    std::all_of(value.elements.begin(), value.elements.end(), IsTypeName);
  if (list || IsTypeName(value)) return std::nullopt;
  return json::ToText(value) +
         " is not valid under any of the schemas listed in the 'anyOf' keyword";
}

Found CheckStrings(const Value& value) {
  if (!value.is(Value::Kind::kArray)) return NotOfType(value, "array");
  for (const Value& element : value.elements) {
    if (Found found = CheckKind(element, Value::Kind::kString, "string")) return found;
  }
  return std::nullopt;
}

Found CheckCount(const Value& value) {
  const Number& number = value.number;
  const bool integer =
      value.is(Value::Kind::kNumber) &&
      (number.kind != Number::Kind::kFloat ||
       number.value == static_cast<double>(static_cast<std::int64_t>(number.value)));
  if (!integer) return NotOfType(value, "integer");
  if (number.value < 0) return json::ToText(value) + " is less than the minimum of 0";
  return std::nullopt;
}

Found Check(const Value& value, Shape shape) {
  switch (shape) {
    case Shape::kSchema:
      return FindSchemaError(value);
    case Shape::kSchemas:
      return CheckSchemas(value);
    case Shape::kSchemaMap:
      return CheckSchemaMap(value);
    case Shape::kTypes:
      return CheckTypes(value);
    case Shape::kStrings:
      return CheckStrings(value);
    case Shape::kArray:
      return CheckKind(value, Value::Kind::kArray, "array");
    case Shape::kString:
      return CheckKind(value, Value::Kind::kString, "string");
    case Shape::kBoolean:
      return CheckKind(value, Value::Kind::kBool, "boolean");
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
