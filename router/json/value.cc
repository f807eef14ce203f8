#include "router/json/value.h"

#include <algorithm>
#include <cstddef>
#include <unordered_map>
#include <utility>

#include "router/json/writer.h"

namespace penstock::router::json {
namespace {

void AppendNumber(std::string& out, const Number& number) {
  switch (number.kind) {
    case Number::Kind::kUnsigned:
      return AppendInteger(out, number.magnitude);
    case Number::Kind::kNegative:
      return AppendInteger(out, number.negative);
    case Number::Kind::kFloat:
      return AppendDouble(out, number.value);
  }
}

// If several members have one key, the last value is kept, at the place of the first.
bool ReadMembers(Reader& reader, Value& out) {
  std::string key;
  std::unordered_map<std::string, std::size_t> places;
  while (reader.NextKey(key)) {
    const auto [place, fresh] = places.try_emplace(key, out.members.size());
    if (fresh) out.members.push_back({key, {}});
    Value& value = out.members[place->second].second;
    value = Value();
    if (!reader.Colon() || !ReadValue(reader, value, "a value")) return false;
  }
  return reader.ok();
}

bool ReadElements(Reader& reader, Value& out) {
  while (reader.NextElement()) {
    if (!ReadValue(reader, out.elements.emplace_back(), "a value")) return false;
  }
  return reader.ok();
}

}  // namespace

Value Value::String(std::string_view text) {
  Value value;
  value.kind = Kind::kString;
  value.text = text;
  return value;
}

Value Value::Bool(bool boolean) {
  Value value;
  value.kind = Kind::kBool;
  value.boolean = boolean;
  return value;
}

Value Value::Array(std::vector<Value> elements) {
  Value value;
  value.kind = Kind::kArray;
  value.elements = std::move(elements);
  return value;
}

Value Value::Object(std::vector<Member> members) {
  Value value;
  value.kind = Kind::kObject;
  value.members = std::move(members);
  return value;
}

const Value* Value::Find(std::string_view key) const {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [key](const Member& member) { return member.first == key; });
  return found == members.end() ? nullptr : &found->second;
}

void Value::Set(std::string_view key, Value value) {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [key](const Member& member) { return member.first == key; });
  if (found != members.end()) {
    found->second = std::move(value);
  } else {
    members.push_back({std::string(key), std::move(value)});
  }
}

bool ReadValue(Reader& reader, Value& out, std::string_view expected) {
  using Kind = Value::Kind;
  if (reader.NextIs('{')) {
    out.kind = Kind::kObject;
    return reader.EnterObject(expected) && ReadMembers(reader, out);
  }
  if (reader.NextIs('[')) {
    out.kind = Kind::kArray;
    return reader.EnterArray(expected) && ReadElements(reader, out);
  }
  if (reader.NextIs('"')) {
    out.kind = Kind::kString;
    return reader.ReadString(out.text, expected);
  }
  if (reader.NextIs('t') || reader.NextIs('f')) {
    out.kind = Kind::kBool;
    return reader.ReadBool(out.boolean, expected);
  }
  if (reader.TakeNull()) return true;
  out.kind = Kind::kNumber;
  return reader.ok() && reader.ReadNumber(out.number, expected);
}

void AppendValue(std::string& out, const Value& value) {
  switch (value.kind) {
    case Value::Kind::kNull:
      out += "null";
      return;
    case Value::Kind::kBool:
      return AppendBool(out, value.boolean);
    case Value::Kind::kNumber:
      return AppendNumber(out, value.number);
    case Value::Kind::kString:
      return AppendString(out, value.text);
    case Value::Kind::kArray:
      AppendArray(out, value.elements, AppendValue);
      return;
    case Value::Kind::kObject:
      break;
  }
  out += '{';
  for (const Value::Member& member : value.members) {
    AppendComma(out);
    AppendString(out, member.first);
    AppendValue(out += ':', member.second);
  }
  out += '}';
}

std::string ToText(const Value& value) {
  std::string text;
  AppendValue(text, value);
  return text;
}

}  // namespace penstock::router::json
