// A field table as a JSON schema, for documents about the interface.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "router/json/fields.h"
#include "router/json/writer.h"

namespace penstock::router::json {

// The schema of the kind that errors call `expected`. `element`: of a list.
std::string SchemaOfKind(std::string_view expected, std::string_view element = {});

template <class T>
void AppendSchema(std::string& out, std::string_view name, std::span<const Field<T>> fields) {
  AppendComma(out);
  AppendString(out, name);
  out += ":{\"type\":\"object\",\"properties\":{";
  std::string required;
  for (const Field<T>& field : fields) {
    if (field.read == nullptr) continue;
    AppendMembers(out, field.name, Raw{SchemaOfKind(field.expected, field.element)});
    if (!field.required) continue;
    AppendComma(required);
    AppendString(required, field.name);
  }
  out += '}';
  if (!required.empty()) out.append(",\"required\":[").append(required).append("]");
  out += '}';
}

}  // namespace penstock::router::json
