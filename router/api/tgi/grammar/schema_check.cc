#include "router/api/tgi/grammar/schema_check.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string_view>

namespace penstock::router::tgi {
namespace {

using json::Number;
using json::Value;

enum class Shape : std::uint8_t {
  kSchema,
  kSchemas,       // a list of them, not empty
  kSchemaMap,     // an object of them
  kDependencies,  // an object of them, or of lists of different strings
  kTypes,         // a type's name, or a list of such
  kStrings,       // a list of different ones
  kStringsMap,    // an object of them
  kBooleanMap,
  kArray,
  kString,
  kAnchor,
  kId,
  kBoolean,
  kNumber,
  kPositive,
  kCount,
};

struct Rule {
  std::string_view keyword;
  Shape shape;
};

// In the order in which the meta-schema has them, vocabulary by vocabulary.
constexpr Rule kRules[] = {
    {"$id", Shape::kId},
    {"$schema", Shape::kString},
    {"$ref", Shape::kString},
    {"$anchor", Shape::kAnchor},
    {"$dynamicRef", Shape::kString},
    {"$dynamicAnchor", Shape::kAnchor},
    {"$vocabulary", Shape::kBooleanMap},
    {"$comment", Shape::kString},
    {"$defs", Shape::kSchemaMap},
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
    {"unevaluatedItems", Shape::kSchema},
    {"unevaluatedProperties", Shape::kSchema},
    {"type", Shape::kTypes},
    {"enum", Shape::kArray},
    {"multipleOf", Shape::kPositive},
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
    {"dependentRequired", Shape::kStringsMap},
    {"title", Shape::kString},
    {"description", Shape::kString},
    {"deprecated", Shape::kBoolean},
    {"readOnly", Shape::kBoolean},
    {"writeOnly", Shape::kBoolean},
    {"examples", Shape::kArray},
    {"format", Shape::kString},
    {"contentEncoding", Shape::kString},
    {"contentMediaType", Shape::kString},
    {"contentSchema", Shape::kSchema},
    {"definitions", Shape::kSchemaMap},
    {"dependencies", Shape::kDependencies},
    {"$recursiveAnchor", Shape::kAnchor},
    {"$recursiveRef", Shape::kString},
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

// Of strings.
bool AllDiffer(const Value& list) {
  std::set<std::string_view> seen;
  return std::ranges::all_of(list.elements,
                             [&](const Value& value) { return seen.insert(value.text).second; });
}

std::string NoneOf(const Value& value) {
  return json::ToText(value) +
         " is not valid under any of the schemas listed in the 'anyOf' keyword";
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

// Every member of an object.
template <class CheckOne>
Found CheckMap(const Value& value, const CheckOne& check) {
  if (!value.is(Value::Kind::kObject)) return NotOfType(value, "object");
  for (const Value::Member& member : value.members) {
    if (Found found = check(member.second)) return found;
  }
  return std::nullopt;
}

Found CheckTypes(const Value& value) {
  const bool list = value.is(Value::Kind::kArray) && !value.elements.empty() &&
                    std::ranges::all_of(value.elements, IsTypeName) && AllDiffer(value);
  if (list || IsTypeName(value)) return std::nullopt;
  return NoneOf(value);
}

Found CheckStrings(const Value& value) {
  if (!value.is(Value::Kind::kArray)) return NotOfType(value, "array");
  for (const Value& element : value.elements) {
    if (Found found = CheckKind(element, Value::Kind::kString, "string")) return found;
  }
  if (!AllDiffer(value)) return json::ToText(value) + " has non-unique elements";
  return std::nullopt;
}

Found CheckDependency(const Value& value) {
  if (!FindSchemaError(value) || !CheckStrings(value)) return std::nullopt;
  return NoneOf(value);
}

Found CheckFlag(const Value& value) { return CheckKind(value, Value::Kind::kBool, "boolean"); }

Found Mismatch(const Value& value, std::string_view pattern) {
  return json::ToText(value) + " does not match \"" + std::string(pattern) + "\"";
}

Found CheckAnchor(const Value& value) {
  if (!value.is(Value::Kind::kString)) return NotOfType(value, "string");
  const auto letter = [](char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; };
  const auto other = [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
  };
  const std::string& text = value.text;
  const bool fits =
      !text.empty() && (letter(text[0]) || text[0] == '_') && std::ranges::all_of(text, other);
  if (fits) return std::nullopt;
  return Mismatch(value, "^[A-Za-z_][-A-Za-z0-9._]*$");
}

Found CheckId(const Value& value) {
  if (!value.is(Value::Kind::kString)) return NotOfType(value, "string");
  const std::size_t mark = value.text.find('#');
  if (mark == std::string::npos || mark + 1 == value.text.size()) return std::nullopt;
  return Mismatch(value, "^[^#]*#?$");
}

Found CheckPositive(const Value& value) {
  if (!value.is(Value::Kind::kNumber)) return NotOfType(value, "number");
  if (value.number.value > 0) return std::nullopt;
  return json::ToText(value) + " is less than or equal to the minimum of 0";
}

Found CheckCount(const Value& value) {
  const Number& number = value.number;
  const bool integer = value.is(Value::Kind::kNumber) && (number.kind != Number::Kind::kFloat ||
                                                          number.value == std::trunc(number.value));
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
      return CheckMap(value, FindSchemaError);
    case Shape::kDependencies:
      return CheckMap(value, CheckDependency);
    case Shape::kTypes:
      return CheckTypes(value);
    case Shape::kStrings:
      return CheckStrings(value);
    case Shape::kStringsMap:
      return CheckMap(value, CheckStrings);
    case Shape::kBooleanMap:
      return CheckMap(value, CheckFlag);
    case Shape::kArray:
      return CheckKind(value, Value::Kind::kArray, "array");
    case Shape::kString:
      return CheckKind(value, Value::Kind::kString, "string");
    case Shape::kAnchor:
      return CheckAnchor(value);
    case Shape::kId:
      return CheckId(value);
    case Shape::kBoolean:
      return CheckFlag(value);
    case Shape::kNumber:
      return CheckKind(value, Value::Kind::kNumber, "number");
    case Shape::kPositive:
      return CheckPositive(value);
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
