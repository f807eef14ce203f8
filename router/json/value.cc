#include "router/json/value.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

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

// Of members with equal keys the last value, at the first one's place.
void KeepLatest(std::vector<Value::Member>& members) {
  if (members.size() < 2) return;
  std::vector<std::size_t> order(members.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&members](std::size_t a, std::size_t b) {
    const int keys = members[a].first.compare(members[b].first);
    return keys != 0 ? keys < 0 : a < b;
  });
  std::vector<bool> gone(members.size());
  bool any = false;
  for (std::size_t i = 1, first = 0; i < order.size(); ++i) {
    if (members[order[i]].first != members[order[first]].first) {
      first = i;
      continue;
    }
    members[order[first]].second = std::move(members[order[i]].second);
    any = gone[order[i]] = true;
  }
  if (!any) return;
  std::size_t at = 0;
  std::erase_if(members, [&](const Value::Member&) { return gone[at++]; });
}

bool ReadMembers(Reader& reader, Value& out) {
  std::string key;
  while (reader.NextKey(key)) {
    if (!reader.Colon()) return false;
    Value::Member& member = out.members.emplace_back(key, Value());
    if (!ReadValue(reader, member.second, "a value")) return false;
  }
  KeepLatest(out.members);
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
    members.emplace_back(key, std::move(value));
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
      out += '[';
      for (std::size_t i = 0; i < value.elements.size(); ++i) {
        if (i > 0) out += ',';
        AppendValue(out, value.elements[i]);
      }
      out += ']';
      return;
    case Value::Kind::kObject:
      break;
  }
  out += '{';
  for (std::size_t i = 0; i < value.members.size(); ++i) {
    if (i > 0) out += ',';
    AppendString(out, value.members[i].first);
    out += ':';
    AppendValue(out, value.members[i].second);
  }
  out += '}';
}

std::string ToText(const Value& value) {
  std::string text;
  AppendValue(text, value);
  return text;
}

}  // namespace penstock::router::json
