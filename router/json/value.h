// A JSON value as a tree, for schemas and tool definitions, which are read as a whole. Keys
// keep the order of their first mention, as serde_json with preserve_order does; of several equal
// keys the last value counts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "router/json/reader.h"

namespace penstock::router::json {

struct Value {
  enum class Kind : std::uint8_t { kNull, kBool, kNumber, kString, kArray, kObject };
  struct Member;  // not a pair, which Clang cannot make of a type that contains it

  Kind kind = Kind::kNull;
  bool boolean = false;
  Number number;
  std::string text;
  std::vector<Value> elements;
  std::vector<Member> members;

  static Value String(std::string_view text);
  static Value Bool(bool value);
  static Value Array(std::vector<Value> elements);
  static Value Object(std::vector<Member> members);

  bool is(Kind wanted) const { return kind == wanted; }
  // Null when this is no object or has no such key.
  const Value* Find(std::string_view key) const;
  // Sets or replaces a member.
  void Set(std::string_view key, Value value);
};

struct Value::Member {
  std::string first;  // the key
  Value second;
};

bool ReadValue(Reader& reader, Value& out, std::string_view expected);

// Compact, in serde_json's form.
void AppendValue(std::string& out, const Value& value);
std::string ToText(const Value& value);

}  // namespace penstock::router::json
