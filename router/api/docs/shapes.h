// JSON schemas in a short notation, for the tables of the OpenAPI document.
//
//   type    string | integer | number | boolean | object | Name of another schema
//           =a|b (one of these strings)  type[] (list)  type{} (map)  type? (or null)  a,b (either)
//   shape   "key:type optional_key?:type", or ":type" for what is no object
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace penstock::router::docs {

struct Shape {
  std::string_view name;
  std::string_view text;
};

void AppendType(std::string& out, std::string_view type);

// "Name":{…}, a member of an object of schemas. An object's schema allows no other keys.
void AppendShape(std::string& out, const Shape& shape);
void AppendShapes(std::string& out, std::span<const Shape> shapes);

}  // namespace penstock::router::docs
