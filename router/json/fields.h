// Declarative field tables: a dialect lists the keys of an object beside the members they fill, and
// ReadObject does the rest (types, null, duplicates, required keys, unknown keys).
//
//   constexpr auto kFields = std::array{
//       MakeField<&Parameters::top_k>("top_k", "i32"),
//       MakeField<&Parameters::stop>("stop", "a sequence")};
//
// The member's type decides what JSON it takes: bool, std::string, 32- and 64-bit integers, float,
// std::optional of them (null is absent), std::vector of them, Raw (any value; points into the
// body). `expected`, the second argument of MakeField, is the type's name in errors.
#pragma once

#include <algorithm>
#include <array>
#include <bitset>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "router/json/reader.h"
#include "router/json/writer.h"

namespace penstock::router::json {

inline bool ReadValue(Reader& reader, bool& out, std::string_view expected) {
  return reader.ReadBool(out, expected);
}
inline bool ReadValue(Reader& reader, std::string& out, std::string_view expected) {
  return reader.ReadString(out, expected);
}
inline bool ReadValue(Reader& reader, Raw& out, std::string_view) {
  return reader.ReadRaw(out.text);
}

bool ReadInteger(Reader& reader, std::int64_t least, std::uint64_t greatest, std::uint64_t& bits,
                 std::string_view expected);

template <std::integral T>
bool ReadValue(Reader& reader, T& out, std::string_view expected) {
  std::uint64_t bits = 0;
  if (!ReadInteger(reader, std::numeric_limits<T>::min(),
                   static_cast<std::uint64_t>(std::numeric_limits<T>::max()), bits, expected)) {
    return false;
  }
  out = static_cast<T>(bits);
  return true;
}

bool ReadValue(Reader& reader, float& out, std::string_view expected);

template <class T>
bool ReadValue(Reader& reader, std::optional<T>& out, std::string_view expected) {
  if (reader.TakeNull()) return true;
  return reader.ok() && ReadValue(reader, out.emplace(), expected);
}

// What an error in an element of a list says was expected.
template <class T>
constexpr std::string_view kElementExpected = "a value";
template <>
inline constexpr std::string_view kElementExpected<std::string> = "a string";
template <>
inline constexpr std::string_view kElementExpected<std::int32_t> = "an integer";
template <>
inline constexpr std::string_view kElementExpected<float> = "f32";

// kElementExpected of the elements of a list member; empty for other members.
template <class M>
constexpr std::string_view kElementOf = {};
template <class M>
constexpr std::string_view kElementOf<std::optional<M>> = kElementOf<M>;
template <class T>
constexpr std::string_view kElementOf<std::vector<T>> = kElementExpected<T>;

template <class T>
bool ReadValue(Reader& reader, std::vector<T>& out, std::string_view expected) {
  if (!reader.EnterArray(expected)) return false;
  out.clear();
  while (reader.NextElement()) {
    if (!ReadValue(reader, out.emplace_back(), kElementExpected<T>)) return false;
  }
  return reader.ok();
}

template <class T>
struct Field {
  std::string_view name;
  std::string_view expected;
  bool required = false;
  bool (*read)(Reader&, T&, std::string_view expected) = nullptr;  // null: without effect
  std::string_view element = {};  // of a list: what its elements are
  std::string_view alias = {};    // a second name; errors say the first
};

template <class T>
constexpr Field<T> WithAlias(Field<T> field, std::string_view alias) {
  field.alias = alias;
  return field;
}

// A key that is known and has no effect: any value is skipped and recorded.
template <class T>
constexpr Field<T> WithoutEffect(std::string_view name) {
  return {name, "any value"};
}

template <class T, class M>
T ObjectOf(M T::*);
template <class T, class M>
M MemberOf(M T::*);

// `T` may inherit the member.
template <class T, auto Member>
constexpr auto MakeFieldOf(std::string_view name, std::string_view expected,
                           bool required = false) {
  return Field<T>{name, expected, required,
                  [](Reader& reader, T& out, std::string_view wanted) {
                    return ReadValue(reader, out.*Member, wanted);
                  },
                  kElementOf<decltype(MemberOf(Member))>};
}

template <auto Member>
constexpr auto MakeField(std::string_view name, std::string_view expected, bool required = false) {
  return MakeFieldOf<decltype(ObjectOf(Member)), Member>(name, expected, required);
}

// The most fields of a table.
inline constexpr std::size_t kMaxFields = 96;

template <class T, std::size_t A, std::size_t B>
constexpr std::array<Field<T>, A + B> Join(const std::array<Field<T>, A>& a,
                                           const std::array<Field<T>, B>& b) {
  static_assert(A + B <= kMaxFields, "ReadObject has a bit for each field");
  std::array<Field<T>, A + B> all;
  std::copy(a.begin(), a.end(), all.begin());
  std::copy(b.begin(), b.end(), all.begin() + A);
  return all;
}

// The field called `key`; fields.size() if none is.
template <class T>
std::size_t IndexOf(std::span<const Field<T>> fields, std::string_view key) {
  std::size_t index = 0;
  while (index < fields.size() && fields[index].name != key &&
         (fields[index].alias.empty() || fields[index].alias != key)) {
    ++index;
  }
  return index;
}

// Records a key that no field has, and skips its value.
template <class T>
bool SkipUnknown(Reader& reader, std::span<const Field<T>> fields, std::string_view key) {
  std::array<std::string_view, kMaxFields> names;
  std::ranges::transform(fields, names.begin(), &Field<T>::name);
  reader.unknown_keys().Add(reader.PathTo(key), key, std::span(names).first(fields.size()));
  return reader.Colon() && reader.Skip();
}

// Reads one object. `type` is what errors call it ("struct GenerateRequest"). Unknown keys are
// skipped and recorded. An empty array counts as an empty object, as in TGI.
template <class T>
bool ReadObject(Reader& reader, std::span<const Field<T>> fields, T& out, std::string_view type) {
  std::bitset<kMaxFields> seen;
  std::string key;
  const bool array = reader.NextIs('[');
  if (array ? !reader.EnterEmptyArray(type) : !reader.EnterObject(type)) return false;
  while (!array && reader.NextKey(key)) {
    const std::size_t index = IndexOf(fields, key);
    if (index == fields.size()) {
      if (!SkipUnknown(reader, fields, key)) return false;
      continue;
    }
    if (seen[index])
      return reader.FailHere("duplicate field `" + std::string(fields[index].name) + "`");
    seen[index] = true;
    const Field<T>& field = fields[index];
    if (field.alias == key) reader.AddAlias(field.name, field.alias);
    if (!reader.Colon()) return false;
    if (reader.limits().null_is_absent && !field.required && reader.TakeNull()) continue;
    if (field.read == nullptr) {
      reader.unknown_keys().AddWithoutEffect(reader.PathTo(field.name));
      if (!reader.Skip()) return false;
      continue;
    }
    if (!reader.ok() || !field.read(reader, out, field.expected)) return false;
  }
  if (!reader.ok()) return false;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (!fields[i].required || seen[i]) continue;
    return reader.FailHere("missing field `" + std::string(fields[i].name) + "`");
  }
  return true;
}

// The same, but an array is a wrong type.
template <class T>
bool ReadStrictObject(Reader& reader, std::span<const Field<T>> fields, T& out,
                      std::string_view type) {
  if (!reader.NextIs('{')) return reader.FailNext(type);
  return ReadObject<T>(reader, fields, out, type);
}

// Records the unknown keys of one object and skips all values, also those of a wrong type.
template <class T>
void FindUnknownKeys(Reader& reader, std::span<const Field<T>> fields) {
  std::string key;
  if (!reader.NextIs('{') || !reader.EnterObject("an object")) return;
  while (reader.NextKey(key)) {
    const bool known = IndexOf(fields, key) < fields.size();
    if (known ? !reader.Colon() || !reader.Skip() : !SkipUnknown(reader, fields, key)) return;
  }
}

}  // namespace penstock::router::json
