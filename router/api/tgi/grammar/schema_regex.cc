#include "router/api/tgi/grammar/schema_regex.h"

#include <algorithm>
#include <array>
#include <cstdint>
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

bool IsScalar(const Value& value) {
  return !value.is(Value::Kind::kArray) && !value.is(Value::Kind::kObject);
}

Value OfType(std::string_view type) { return Value::Object({{"type", Value::String(type)}}); }

class Compiler {
 public:
  explicit Compiler(const Value& root) : root_(root) {}

  std::variant<std::string, SchemaError> Run() {
    std::string regex = Any(root_);
    if (error_) return *std::move(error_);
    return regex;
  }

 private:
  using Rule = std::string (Compiler::*)(const Value& object, const Value& keyword);
  struct Keyword {
    std::string_view name;
    Rule rule;
  };
  static const std::array<Keyword, 9> kKeywords;
  static const std::array<Keyword, 7> kTypes;

  // Everything stops at the first error; what is returned then does not matter.
  std::string Fail(std::string message) {
    if (!error_) error_ = SchemaError{std::move(message)};
    return "";
  }

  std::string FailTooLong() {
    return Fail("the expression of this schema must have at most " + std::to_string(kMaxBytes) +
                " bytes");
  }

  std::string Any(const Value& schema) {
    if (error_) return "";
    if (++depth_ > kMaxDepth) {
      return Fail("the schema nests deeper than " + std::to_string(kMaxDepth));
    }
    std::string regex = AnyHere(schema);
    --depth_;
    bytes_ += regex.size();
    if (bytes_ > kMaxBytes * kMaxDepth || regex.size() > kMaxBytes) {
      return FailTooLong();
    }
    return regex;
  }

  std::string AnyHere(const Value& schema) {
    if (!schema.is(Value::Kind::kObject)) return Fail("Invalid JSON Schema: expected an object");
    if (schema.members.empty()) return Unconstrained();
    for (const Keyword& keyword : kKeywords) {
      const Value* value = schema.Find(keyword.name);
      if (value != nullptr) return (this->*keyword.rule)(schema, *value);
    }
    return Fail("Unsupported JSON Schema structure " + json::ToText(schema) +
                " \nMake sure it is valid to the JSON Schema specification and check if it's "
                "supported by Outlines.\nIf it should be supported, please open an issue.");
  }

  std::vector<std::string> All(const Value& list, std::string_view open = "",
                               std::string_view close = "") {
    std::vector<std::string> parts;
    for (const Value& element : list.elements) {
      if (error_) break;
      parts.push_back(std::string(open) + Any(element) + std::string(close));
    }
    return parts;
  }

  std::string Unconstrained() {
    std::vector<std::string> parts;
    for (const char* type : {"boolean", "null", "number", "integer", "string", "array", "object"}) {
      parts.push_back("(" + Any(OfType(type)) + ")");
    }
    return Joined(parts, "|");
  }

  std::string Member(const Value::Member& member) {
    std::string regex(kBlank);
    regex.append("\"").append(Escape(member.first)).append("\"");
    regex.append(kBlank).append(":").append(kBlank);
    return regex + Any(member.second);
  }

  std::string Properties(const Value& object, const Value& properties) {
    if (!properties.is(Value::Kind::kObject)) {
      return Fail("'properties' not found or not an object");
    }
    const std::unordered_set<std::string_view> names = Required(object);
    std::vector<bool> required;
    for (const Value::Member& member : properties.members) {
      required.push_back(names.contains(member.first));
    }
    const bool any = std::find(required.begin(), required.end(), true) != required.end();
    std::string regex = "\\{";
    regex += any ? SomeRequired(properties, required) : NoneRequired(properties);
    return regex.append(kBlank).append("\\}");
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
    std::vector<std::string> behind;
    for (std::size_t i = 0; i < required.size() && !error_; ++i) {
      std::string part = Member(properties.members[i]);
      if (i > last) {
        behind.push_back(std::move(part));
        continue;
      }
      if (i < last) part.append(kBlank).append(",");
      regex += required[i] ? part : "(" + part + ")?";
    }
    const auto rest = AnyBehind(behind, std::string(kBlank) + ",", kMaxBytes);
    return rest ? regex + *rest : FailTooLong();
  }

  std::string NoneRequired(const Value& properties) {
    std::vector<std::string> parts;
    std::size_t bytes = 0;
    for (const Value::Member& member : properties.members) {
      parts.push_back(Member(member));
      bytes += parts.back().size();
      if (error_ || bytes > kMaxBytes) break;
    }
    const auto regex = AnyInOrder(parts, std::string(kBlank) + ",", kMaxBytes);
    return regex ? "(" + *regex + ")?" : FailTooLong();
  }

  std::string AllOf(const Value&, const Value& list) {
    if (!list.is(Value::Kind::kArray)) return Fail("'allOf' must be an array");
    return "(" + Joined(All(list), "") + ")";
  }
  std::string AnyOf(const Value&, const Value& list) {
    if (!list.is(Value::Kind::kArray)) return Fail("'anyOf' must be an array");
    return "(" + Joined(All(list), "|") + ")";
  }
  std::string OneOf(const Value&, const Value& list) {
    if (!list.is(Value::Kind::kArray)) return Fail("'oneOf' must be an array");
    return "(" + Joined(All(list, "(?:", ")"), "|") + ")";
  }
  std::string PrefixItems(const Value&, const Value& list) {
    if (!list.is(Value::Kind::kArray)) return Fail("'prefixItems' must be an array");
    const std::string comma = std::string(kBlank) + "," + std::string(kBlank);
    return "\\[" + std::string(kBlank) + Joined(All(list), comma) + std::string(kBlank) + "\\]";
  }
  std::string Enum(const Value&, const Value& list) {
    if (!list.is(Value::Kind::kArray)) return Fail("'enum' must be an array");
    std::vector<std::string> choices;
    for (const Value& choice : list.elements) {
      if (!IsScalar(choice)) {
        return Fail("Unsupported data type in enum: " + json::ToText(choice));
      }
      choices.push_back(Escape(json::ToText(choice)));
    }
    return "(" + Joined(choices, "|") + ")";
  }
  std::string Const(const Value&, const Value& value) {
    if (!IsScalar(value)) return Fail("Unsupported data type in const: " + json::ToText(value));
    return Escape(json::ToText(value));
  }

  std::string Ref(const Value&, const Value& path) {
    if (!path.is(Value::Kind::kString)) return Fail("'$ref' must be a string");
    const std::string_view text = path.text;
    const std::size_t mark = text.find('#');
    if (mark != text.npos && text.find('#', mark + 1) != text.npos) {
      return Fail("Invalid reference format: " + path.text);
    }
    if (mark != text.npos && mark != 0 && !IsRoot(text.substr(0, mark))) {
      return Fail("External references are not supported: " + path.text);
    }
    return Local(mark == text.npos ? text : text.substr(mark + 1));
  }

  bool IsRoot(std::string_view base) const {
    const Value* id = root_.Find("$id");
    return id != nullptr && id->is(Value::Kind::kString) && id->text == base;
  }

  // The part of the schema at that path.
  std::string Local(std::string_view rest) {
    const Value* found = &root_;
    while (!rest.empty()) {
      const std::size_t slash = std::min(rest.find('/'), rest.size());
      const std::string_view part = rest.substr(0, slash);
      rest.remove_prefix(std::min(slash + 1, rest.size()));
      if (part.empty()) continue;
      found = found->Find(part);
      if (found == nullptr) return Fail("Invalid reference path: " + std::string(part));
    }
    return Any(*found);
  }

  std::string Type(const Value& object, const Value& type) {
    if (!type.is(Value::Kind::kString)) return Fail("'type' must be a string");
    for (const Keyword& known : kTypes) {
      if (known.name == type.text) return (this->*known.rule)(object, type);
    }
    return Fail("Unsupported type: " + type.text);
  }

  std::string Boolean(const Value&, const Value&) { return "(true|false)"; }
  std::string Null(const Value&, const Value&) { return "null"; }

  std::string String(const Value& object, const Value&) {
    const Value* least = object.Find("minLength");
    const Value* most = object.Find("maxLength");
    if (least != nullptr || most != nullptr) {
      if (least != nullptr && most != nullptr && least->number.value > most->number.value) {
        return Fail("maxLength must be greater than or equal to minLength");
      }
      return "\"" + std::string(kCharacter) +
             Bounds("0", Count(object, "minLength"), Count(object, "maxLength")) + "\"";
    }
    const Value* pattern = object.Find("pattern");
    if (pattern != nullptr && pattern->is(Value::Kind::kString)) {
      std::string_view text = pattern->text;
      if (text.size() >= 2 && text.front() == '^' && text.back() == '$') {
        text = text.substr(1, text.size() - 2);
      }
      return "(\"" + std::string(text) + "\")";
    }
    const Value* format = object.Find("format");
    if (format == nullptr || !format->is(Value::Kind::kString)) {
      return "\"" + std::string(kCharacter) + "*\"";
    }
    for (const Format& known : kFormats) {
      if (known.name == format->text) return std::string(known.regex);
    }
    return Fail("Format " + format->text + " is not supported by Outlines");
  }

  // "{least,most}"; an absent one is `otherwise` or nothing.
  static std::string Bounds(std::string_view otherwise, std::optional<std::uint64_t> least,
                            std::optional<std::uint64_t> most) {
    std::string text = "{";
    text += least ? std::to_string(*least) : std::string(otherwise);
    text += ',';
    if (most) text += std::to_string(*most);
    return text + "}";
  }

  // A quantifier of digits. Bounds that are 0 after subtracting the offset do not count.
  std::string Digits(const Value& object, std::string_view least_key, std::string_view most_key,
                     std::uint64_t offset, std::string_view lowest, std::string_view otherwise) {
    std::optional<std::uint64_t> least = Count(object, least_key);
    std::optional<std::uint64_t> most = Count(object, most_key);
    if (least) least = Below(*least, offset);
    if (most) most = Below(*most, offset);
    if (least && most && *most < *least) {
      return Fail("max bound must be greater than or equal to min bound");
    }
    if (least == 0u) least = std::nullopt;
    if (most == 0u) most = std::nullopt;
    return least || most ? Bounds(lowest, least, most) : std::string(otherwise);
  }

  std::string NumberType(const Value& object, const Value&) {
    constexpr std::string_view kBounds[] = {"minDigitsInteger",  "maxDigitsInteger",
                                            "minDigitsFraction", "maxDigitsFraction",
                                            "minDigitsExponent", "maxDigitsExponent"};
    const bool bounded = std::any_of(std::begin(kBounds), std::end(kBounds),
                                     [&](auto key) { return object.Find(key) != nullptr; });
    if (!bounded) return std::string(kNumber);
    return "((-)?(0|[1-9][0-9]" + Digits(object, kBounds[0], kBounds[1], 1, "1", "*") +
           "))(\\.[0-9]" + Digits(object, kBounds[2], kBounds[3], 0, "0", "+") +
           ")?([eE][+-][0-9]" + Digits(object, kBounds[4], kBounds[5], 0, "0", "+") + ")?";
  }

  std::string IntegerType(const Value& object, const Value&) {
    if (object.Find("minDigits") == nullptr && object.Find("maxDigits") == nullptr) {
      return std::string(kInteger);
    }
    return "(-)?(0|[1-9][0-9]" + Digits(object, "minDigits", "maxDigits", 1, "0", "*") + ")";
  }

  // How many elements may follow the first. nullopt: the list must be empty.
  static std::optional<std::string> Repeats(std::uint64_t least,
                                            std::optional<std::uint64_t> most) {
    if (most == 0u) return std::nullopt;
    if (most) most = *most - 1;
    return Bounds("0", Below(least, 1), most);
  }

  // Values without a schema, nested up to `depth`.
  std::vector<Value> Untyped(const Value& object, std::vector<Value> types) {
    const std::uint64_t depth = Count(object, "depth").value_or(2);
    if (depth == 0) return types;
    Value below;
    below.kind = Value::Kind::kNumber;
    below.number.magnitude = depth - 1;
    for (const char* type : {"object", "array"}) {
      Value nested = OfType(type);
      nested.Set("depth", below);
      types.push_back(std::move(nested));
    }
    return types;
  }

  std::string ObjectType(const Value& object, const Value&) {
    const std::uint64_t least = Count(object, "minProperties").value_or(0);
    const auto repeats = Repeats(least, Count(object, "maxProperties"));
    const std::string blank(kBlank);
    if (!repeats) return "\\{" + blank + "\\}";
    const Value* additional = object.Find("additionalProperties");
    const bool free =
        additional == nullptr || (additional->is(Value::Kind::kBool) && additional->boolean);
    std::string value;
    if (free) {
      value = "(" +
              Joined(All(Value::Array(Untyped(object, {OfType("string"), OfType("number"),
                                                       OfType("boolean"), OfType("null")}))),
                     "|") +
              ")";
    } else {
      value = Any(*additional);
    }
    const std::string pair = "\"" + std::string(kCharacter) + "*\"" + blank + ":" + blank + value;
    return "\\{" + blank + "(" + pair + "(" + blank + "," + blank + pair + ")" + *repeats + ")" +
           (least == 0 ? "?" : "") + blank + "\\}";
  }

  std::string ArrayType(const Value& object, const Value&) {
    const std::uint64_t least = Count(object, "minItems").value_or(0);
    const auto repeats = Repeats(least, Count(object, "maxItems"));
    const std::string blank(kBlank);
    if (!repeats) return "\\[" + blank + "\\]";
    const Value* items = object.Find("items");
    const std::string item =
        items != nullptr ? Any(*items)
                         : Joined(All(Value::Array(Untyped(
                                      object, {OfType("boolean"), OfType("null"), OfType("number"),
                                               OfType("integer"), OfType("string")}))),
                                  "|");
    return "\\[" + blank + "((" + item + ")(," + blank + "(" + item + "))" + *repeats + ")" +
           (least == 0 ? "?" : "") + blank + "\\]";
  }

  const Value& root_;
  std::optional<SchemaError> error_;
  int depth_ = 0;
  std::size_t bytes_ = 0;  // made so far, parts of parts included
};

// The first keyword that a schema has decides.
const std::array<Compiler::Keyword, 9> Compiler::kKeywords = {{
    {"properties", &Compiler::Properties},
    {"allOf", &Compiler::AllOf},
    {"anyOf", &Compiler::AnyOf},
    {"oneOf", &Compiler::OneOf},
    {"prefixItems", &Compiler::PrefixItems},
    {"enum", &Compiler::Enum},
    {"const", &Compiler::Const},
    {"$ref", &Compiler::Ref},
    {"type", &Compiler::Type},
}};

const std::array<Compiler::Keyword, 7> Compiler::kTypes = {{
    {"string", &Compiler::String},
    {"number", &Compiler::NumberType},
    {"integer", &Compiler::IntegerType},
    {"array", &Compiler::ArrayType},
    {"object", &Compiler::ObjectType},
    {"boolean", &Compiler::Boolean},
    {"null", &Compiler::Null},
}};

}  // namespace

std::variant<std::string, SchemaError> SchemaToRegex(const Value& schema) {
  return Compiler(schema).Run();
}

}  // namespace penstock::router::tgi
