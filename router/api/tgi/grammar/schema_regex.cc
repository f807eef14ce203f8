#include "router/api/tgi/grammar/schema_regex.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "router/api/tgi/grammar/optional_members.h"
#include "router/json/writer.h"

namespace penstock::router::tgi {
namespace {

using json::Number;
using json::Value;

constexpr std::size_t kMaxBytes = std::size_t{256} << 10;  // of an expression, as text/grammar.h
constexpr int kMaxDepth = 64;

constexpr std::string_view kBlank = "[ ]?";
constexpr std::string_view kComma = "[ ]?,[ ]?";
constexpr std::string_view kColon = "[ ]?:[ ]?";
constexpr std::string_view kCharacter = R"re(([^"\\\x00-\x1F\x7F-\x9F]|\\["\\]))re";
constexpr std::string_view kInteger = "(-)?(0|[1-9][0-9]*)";
constexpr std::string_view kNumber = R"re(((-)?(0|[1-9][0-9]*))(\.[0-9]+)?([eE][+-][0-9]+)?)re";

struct Format {
  std::string_view name;
  std::string_view regex;
};
constexpr Format kFormats[] = {
    {"date-time",
     R"re("(-?(?:[1-9][0-9]*)?[0-9]{4})-(1[0-2]|0[1-9])-(3[01]|0[1-9]|[12][0-9])T(2[0-3]|[01][0-9]):([0-5][0-9]):([0-5][0-9])(\.[0-9]{3})?(Z)?")re"},
    {"date", R"re("(?:\d{4})-(?:0[1-9]|1[0-2])-(?:0[1-9]|[1-2][0-9]|3[0-1])")re"},
    {"time", R"re("(2[0-3]|[01][0-9]):([0-5][0-9]):([0-5][0-9])(\\.[0-9]+)?(Z)?")re"},
    {"uuid", R"re("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")re"},
};

// A keyword whose value is a list of schemas, and what surrounds their expressions.
struct ListForm {
  std::string_view keyword, begin, between, end;
};
constexpr ListForm kLists[] = {
    {"allOf", "(", "", ")"},
    {"anyOf", "(", "|", ")"},
    {"oneOf", "((?:", ")|(?:", "))"},
    {"prefixItems", R"(\[[ ]?)", kComma, R"([ ]?\])"},
};

// The text with the characters that mean something in an expression taken literally.
std::string Escape(std::string_view text) {
  constexpr std::string_view kMeta = "\\.+*?()|[]{}^$#&-~";
  std::string escaped;
  for (const char c : text) {
    if (kMeta.find(c) != kMeta.npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string Joined(const std::vector<std::string>& parts, std::string_view separator) {
  std::string all;
  for (const std::string& part : parts) {
    if (&part != &parts.front()) all += separator;
    all += part;
  }
  return all;
}

std::optional<std::uint64_t> Count(const Value& object, std::string_view key) {
  const Value* value = object.Find(key);
  if (value == nullptr || !value->is(Value::Kind::kNumber)) return std::nullopt;
  if (value->number.kind != Number::Kind::kUnsigned) return std::nullopt;
  return value->number.magnitude;
}

std::uint64_t Below(std::uint64_t count, std::uint64_t offset) {
  return count > offset ? count - offset : 0;
}

// "{least,most}"; an absent one is `otherwise` or nothing.
std::string Bounds(std::string_view otherwise, std::optional<std::uint64_t> least,
                   std::optional<std::uint64_t> most) {
  return Concat({"{", least ? std::to_string(*least) : std::string(otherwise), ",",
                 most ? std::to_string(*most) : "", "}"});
}

// `most` elements or as many as wanted, but at least `least`, between brackets. `most` is not 0.
std::string Repeated(std::string_view open, std::string_view element, std::string_view comma,
                     std::string_view close, std::uint64_t least,
                     std::optional<std::uint64_t> most) {
  if (most) most = *most - 1;
  return Concat({open, kBlank, "(", element, "(", comma, element, ")",
                 Bounds("0", Below(least, 1), most), ")", least == 0 ? "?" : "", kBlank, close});
}

Value OfType(std::string_view type) { return Value::Object({{"type", Value::String(type)}}); }

class Compiler {
 public:
  explicit Compiler(const Value& root) : root_(root) {}

  absl::StatusOr<std::string> Run() {
    std::string regex = Any(root_);
    if (!error_.ok()) return error_;
    return regex;
  }

 private:
  // Everything stops at the first error; what is returned then does not matter.
  std::string Fail(std::initializer_list<std::string_view> parts) {
    if (error_.ok()) error_ = absl::InvalidArgumentError(Concat(parts));
    return "";
  }

  std::string FailTooLong() {
    return Fail(
        {"the expression of this schema must have at most ", std::to_string(kMaxBytes), " bytes"});
  }

  std::string Any(const Value& schema) {
    if (!error_.ok()) return "";
    if (++depth_ > kMaxDepth)
      return Fail({"the schema nests deeper than ", std::to_string(kMaxDepth)});
    std::string regex = AnyHere(schema);
    --depth_;
    bytes_ += regex.size();
    if (bytes_ > kMaxBytes * kMaxDepth || regex.size() > kMaxBytes) return FailTooLong();
    return regex;
  }

  // The first keyword that a schema has decides.
  std::string AnyHere(const Value& schema) {
    if (!schema.is(Value::Kind::kObject)) return Fail({"Invalid JSON Schema: expected an object"});
    if (schema.members.empty()) return Unconstrained();
    if (const Value* value = schema.Find("properties")) return Properties(schema, *value);
    for (const ListForm& form : kLists) {
      if (const Value* value = schema.Find(form.keyword)) return List(form, *value);
    }
    if (const Value* value = schema.Find("enum")) return Enum(*value);
    if (const Value* value = schema.Find("const")) return Literal("const", *value);
    if (const Value* value = schema.Find("$ref")) return Ref(*value);
    if (const Value* value = schema.Find("type")) return Type(schema, *value);
    return Fail({"Unsupported JSON Schema structure ", json::ToText(schema),
                 " \nMake sure it is valid to the JSON Schema specification and check if it's "
                 "supported by Outlines.\nIf it should be supported, please open an issue."});
  }

  std::vector<std::string> All(const std::vector<Value>& schemas) {
    std::vector<std::string> parts;
    for (const Value& schema : schemas) {
      if (!error_.ok()) break;
      parts.push_back(Any(schema));
    }
    return parts;
  }

  std::string List(const ListForm& form, const Value& list) {
    if (!list.is(Value::Kind::kArray)) return Fail({"'", form.keyword, "' must be an array"});
    return Concat({form.begin, Joined(All(list.elements), form.between), form.end});
  }

  std::string Unconstrained() {
    std::vector<Value> types;
    for (const char* type : {"boolean", "null", "number", "integer", "string", "array", "object"}) {
      types.push_back(OfType(type));
    }
    return Concat({"(", Joined(All(types), ")|("), ")"});
  }

  std::string Member(const Value::Member& member) {
    return Concat({kBlank, "\"", Escape(member.first), "\"", kColon, Any(member.second)});
  }

  std::string Properties(const Value& object, const Value& properties) {
    if (!properties.is(Value::Kind::kObject)) {
      return Fail({"'properties' not found or not an object"});
    }
    const std::unordered_set<std::string_view> names = Required(object);
    std::vector<bool> required;
    for (const Value::Member& member : properties.members) {
      required.push_back(names.contains(member.first));
    }
    const bool any = std::find(required.begin(), required.end(), true) != required.end();
    return Concat({"\\{", any ? SomeRequired(properties, required) : NoneRequired(properties),
                   kBlank, "\\}"});
  }

  static std::unordered_set<std::string_view> Required(const Value& object) {
    std::unordered_set<std::string_view> names;
    const Value* required = object.Find("required");
    if (required == nullptr) return names;
    for (const Value& name : required->elements) {
      if (name.is(Value::Kind::kString)) names.insert(name.text);
    }
    return names;
  }

  // An optional member contains its comma: at its end if a required member follows, else in front.
  std::string SomeRequired(const Value& properties, const std::vector<bool>& required) {
    std::size_t last = required.size() - 1;
    while (!required[last]) --last;
    std::string regex;
    std::vector<std::string> after;
    for (std::size_t i = 0; i < required.size() && error_.ok(); ++i) {
      std::string part = Member(properties.members[i]);
      if (i > last) {
        after.push_back(std::move(part));
        continue;
      }
      if (i < last) part += Concat({kBlank, ","});
      regex += required[i] ? part : Concat({"(", part, ")?"});
    }
    const auto rest = AnyAfter(after, Concat({kBlank, ","}), kMaxBytes);
    return rest ? regex + *rest : FailTooLong();
  }

  std::string NoneRequired(const Value& properties) {
    std::vector<std::string> parts;
    std::size_t bytes = 0;
    for (const Value::Member& member : properties.members) {
      parts.push_back(Member(member));
      bytes += parts.back().size();
      if (!error_.ok() || bytes > kMaxBytes) break;
    }
    const auto regex = AnyInOrder(parts, Concat({kBlank, ","}), kMaxBytes);
    return regex ? Concat({"(", *regex, ")?"}) : FailTooLong();
  }

  std::string Enum(const Value& list) {
    if (!list.is(Value::Kind::kArray)) return Fail({"'enum' must be an array"});
    std::vector<std::string> choices;
    for (const Value& choice : list.elements) choices.push_back(Literal("enum", choice));
    return Concat({"(", Joined(choices, "|"), ")"});
  }

  std::string Literal(std::string_view keyword, const Value& value) {
    const std::string text = json::ToText(value);
    const bool scalar = !value.is(Value::Kind::kArray) && !value.is(Value::Kind::kObject);
    return scalar ? Escape(text) : Fail({"Unsupported data type in ", keyword, ": ", text});
  }

  std::string Ref(const Value& path) {
    if (!path.is(Value::Kind::kString)) return Fail({"'$ref' must be a string"});
    const std::string_view text = path.text;
    const std::size_t mark = text.find('#');
    if (mark == text.npos) return Local(text);
    if (text.find('#', mark + 1) != text.npos) return Fail({"Invalid reference format: ", text});
    if (mark != 0 && !IsRoot(text.substr(0, mark))) {
      return Fail({"External references are not supported: ", text});
    }
    return Local(text.substr(mark + 1));
  }

  bool IsRoot(std::string_view base) const {
    const Value* id = root_.Find("$id");
    return id != nullptr && id->is(Value::Kind::kString) && id->text == base;
  }

  // The part of the schema at that path.
  std::string Local(std::string_view path) {
    const Value* found = &root_;
    while (!path.empty()) {
      const std::size_t slash = std::min(path.find('/'), path.size());
      const std::string_view part = path.substr(0, slash);
      path.remove_prefix(std::min(slash + 1, path.size()));
      if (part.empty()) continue;
      found = found->Find(part);
      if (found == nullptr) return Fail({"Invalid reference path: ", part});
    }
    return Any(*found);
  }

  std::string Type(const Value& object, const Value& type) {
    if (!type.is(Value::Kind::kString)) return Fail({"'type' must be a string"});
    if (type.text == "string") return String(object);
    if (type.text == "number") return NumberType(object);
    if (type.text == "integer") return IntegerType(object);
    if (type.text == "array") return ArrayType(object);
    if (type.text == "object") return ObjectType(object);
    if (type.text == "boolean") return "(true|false)";
    if (type.text == "null") return "null";
    return Fail({"Unsupported type: ", type.text});
  }

  std::string String(const Value& object) {
    const Value* least = object.Find("minLength");
    const Value* most = object.Find("maxLength");
    if (least != nullptr || most != nullptr) {
      if (least != nullptr && most != nullptr && least->number.value > most->number.value) {
        return Fail({"maxLength must be greater than or equal to minLength"});
      }
      return Concat({"\"", kCharacter,
                     Bounds("0", Count(object, "minLength"), Count(object, "maxLength")), "\""});
    }
    const Value* pattern = object.Find("pattern");
    if (pattern != nullptr && pattern->is(Value::Kind::kString)) {
      std::string_view text = pattern->text;
      if (text.size() >= 2 && text.front() == '^' && text.back() == '$') {
        text = text.substr(1, text.size() - 2);
      }
      return Concat({"(\"", text, "\")"});
    }
    const Value* format = object.Find("format");
    if (format == nullptr || !format->is(Value::Kind::kString)) {
      return Concat({"\"", kCharacter, "*\""});
    }
    for (const Format& known : kFormats) {
      if (known.name == format->text) return std::string(known.regex);
    }
    return Fail({"Format ", format->text, " is not supported by Outlines"});
  }

  // A quantifier of digits. Bounds that are 0 after subtracting the offset do not count.
  std::string Digits(const Value& object, std::string_view least_key, std::string_view most_key,
                     std::uint64_t offset, std::string_view lowest, std::string_view otherwise) {
    std::optional<std::uint64_t> least = Count(object, least_key);
    std::optional<std::uint64_t> most = Count(object, most_key);
    if (least) least = Below(*least, offset);
    if (most) most = Below(*most, offset);
    if (least && most && *most < *least) {
      return Fail({"max bound must be greater than or equal to min bound"});
    }
    if (least == 0u) least = std::nullopt;
    if (most == 0u) most = std::nullopt;
    return least || most ? Bounds(lowest, least, most) : std::string(otherwise);
  }

  std::string NumberType(const Value& object) {
    constexpr std::string_view kBounds[] = {"minDigitsInteger",  "maxDigitsInteger",
                                            "minDigitsFraction", "maxDigitsFraction",
                                            "minDigitsExponent", "maxDigitsExponent"};
    const bool bounded = std::any_of(std::begin(kBounds), std::end(kBounds),
                                     [&](auto key) { return object.Find(key) != nullptr; });
    if (!bounded) return std::string(kNumber);
    return Concat({"((-)?(0|[1-9][0-9]", Digits(object, kBounds[0], kBounds[1], 1, "1", "*"),
                   "))(\\.[0-9]", Digits(object, kBounds[2], kBounds[3], 0, "0", "+"),
                   ")?([eE][+-][0-9]", Digits(object, kBounds[4], kBounds[5], 0, "0", "+"), ")?"});
  }

  std::string IntegerType(const Value& object) {
    if (object.Find("minDigits") == nullptr && object.Find("maxDigits") == nullptr) {
      return std::string(kInteger);
    }
    return Concat(
        {"(-)?(0|[1-9][0-9]", Digits(object, "minDigits", "maxDigits", 1, "0", "*"), ")"});
  }

  // Values without a schema: one of these types, or objects and arrays that nest `depth` deep.
  std::string Untyped(const Value& object, std::initializer_list<const char*> scalars) {
    std::vector<Value> types;
    for (const char* type : scalars) types.push_back(OfType(type));
    const std::uint64_t depth = Count(object, "depth").value_or(2);
    if (depth > 0) {
      Value below;
      below.kind = Value::Kind::kNumber;
      below.number.magnitude = depth - 1;
      for (const char* type : {"object", "array"}) {
        types.push_back(OfType(type));
        types.back().Set("depth", below);
      }
    }
    return Joined(All(types), "|");
  }

  std::string ObjectType(const Value& object) {
    const auto most = Count(object, "maxProperties");
    if (most == 0u) return Concat({"\\{", kBlank, "\\}"});
    const Value* additional = object.Find("additionalProperties");
    const bool free =
        additional == nullptr || (additional->is(Value::Kind::kBool) && additional->boolean);
    const std::string value =
        free ? Concat({"(", Untyped(object, {"string", "number", "boolean", "null"}), ")"})
             : Any(*additional);
    return Repeated("\\{", Concat({"\"", kCharacter, "*\"", kColon, value}), kComma, "\\}",
                    Count(object, "minProperties").value_or(0), most);
  }

  std::string ArrayType(const Value& object) {
    const auto most = Count(object, "maxItems");
    if (most == 0u) return Concat({"\\[", kBlank, "\\]"});
    const Value* items = object.Find("items");
    const std::string item =
        items != nullptr ? Any(*items)
                         : Untyped(object, {"boolean", "null", "number", "integer", "string"});
    return Repeated("\\[", Concat({"(", item, ")"}), Concat({",", kBlank}), "\\]",
                    Count(object, "minItems").value_or(0), most);
  }

  const Value& root_;
  absl::Status error_;
  int depth_ = 0;
  std::size_t bytes_ = 0;  // made so far, parts of parts included
};

}  // namespace

absl::StatusOr<std::string> SchemaToRegex(const Value& schema) { return Compiler(schema).Run(); }

}  // namespace penstock::router::tgi
