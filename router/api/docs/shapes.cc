#include "router/api/docs/shapes.h"

#include <algorithm>
#include <array>

#include "router/json/writer.h"

namespace penstock::router::docs {
namespace {

constexpr std::array<std::string_view, 5> kPlain = {"string", "integer", "number", "boolean",
                                                    "object"};

// Removes and returns the part of `text` before `separator`.
std::string_view TakePart(std::string_view& text, char separator) {
  const std::size_t end = text.find(separator);
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  return part;
}

void AppendEither(std::string& out, std::string_view types) {
  out += "{\"anyOf\":[";
  while (!types.empty()) {
    json::AppendComma(out);
    AppendType(out, TakePart(types, ','));
  }
  out += "]}";
}

void AppendNamed(std::string& out, std::string_view names) {
  out += "{\"type\":\"string\",\"enum\":[";
  while (!names.empty()) {
    json::AppendComma(out);
    json::AppendString(out, TakePart(names, '|'));
  }
  out += "]}";
}

void AppendNullable(std::string& out, std::string_view type) {
  std::string inner;
  AppendType(inner, type);
  // OpenAPI ignores other members beside a reference.
  const bool alone = inner.starts_with("{\"$ref\"");
  if (alone) inner = "{\"allOf\":[" + inner + "]}";
  inner.pop_back();
  out.append(inner).append(",\"nullable\":true}");
}

void AppendObject(std::string& out, std::string_view members) {
  out += "{\"type\":\"object\",\"properties\":{";
  std::string required;
  while (!members.empty()) {
    std::string_view type = TakePart(members, ' ');
    std::string_view key = TakePart(type, ':');
    if (key.ends_with('?')) {
      key.remove_suffix(1);
    } else {
      json::AppendComma(required);
      json::AppendString(required, key);
    }
    json::AppendMembers(out, key, [type](std::string& text) { AppendType(text, type); });
  }
  out += '}';
  if (!required.empty()) out.append(",\"required\":[").append(required).append("]");
  out += ",\"additionalProperties\":false}";
}

}  // namespace

void AppendType(std::string& out, std::string_view type) {
  if (type.find(',') != type.npos) return AppendEither(out, type);
  if (type.starts_with('=')) return AppendNamed(out, type.substr(1));
  if (type.ends_with('?')) return AppendNullable(out, type.substr(0, type.size() - 1));
  if (type.ends_with("[]") || type.ends_with("{}")) {
    out += type.ends_with("[]") ? "{\"type\":\"array\",\"items\":"
                                : "{\"type\":\"object\",\"additionalProperties\":";
    AppendType(out, type.substr(0, type.size() - 2));
    out += '}';
  } else if (std::ranges::find(kPlain, type) != kPlain.end()) {
    out.append("{\"type\":\"").append(type).append("\"}");
  } else {
    out.append("{\"$ref\":\"#/components/schemas/").append(type).append("\"}");
  }
}

void AppendShape(std::string& out, const Shape& shape) {
  json::AppendComma(out);
  json::AppendString(out, shape.name);
  out += ':';
  if (shape.text.starts_with(':')) return AppendType(out, shape.text.substr(1));
  AppendObject(out, shape.text);
}

void AppendShapes(std::string& out, std::span<const Shape> shapes) {
  for (const Shape& shape : shapes) AppendShape(out, shape);
}

}  // namespace penstock::router::docs
