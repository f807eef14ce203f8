#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>
#include <vector>

#include "router/api/openai/grammar_forms.h"
#include "router/json/fields.h"
#include "router/json/reader.h"
#include "router/json/writer.h"

namespace penstock::router::openai {
namespace {

struct Structure {
  std::string begin;
  std::optional<json::Raw> schema;
  std::string end;
};

struct StructuralTag {
  std::vector<Structure> structures;
  std::vector<std::string> triggers;
};

constexpr auto kStructure = std::array{
    json::MakeField<&Structure::begin>("begin", "a string", true),
    json::MakeField<&Structure::schema>("schema", "an object"),
    json::MakeField<&Structure::end>("end", "a string", true),
};

bool ReadValue(json::Reader& reader, std::vector<Structure>& out, std::string_view expected) {
  if (!reader.EnterArray(expected)) return false;
  while (reader.NextElement()) {
    if (!json::ReadObject<Structure>(reader, kStructure, out.emplace_back(), "an object")) {
      return false;
    }
  }
  return reader.ok();
}

constexpr auto kTag = std::array{
    json::WithoutEffect<StructuralTag>("type"),
    json::MakeField<&StructuralTag::structures>("structures", "an array of objects", true),
    json::MakeField<&StructuralTag::triggers>("triggers", "an array of strings", true),
};

// A text as a regular expression that matches it and nothing else, without a `/`.
void AppendEscaped(std::string& out, std::string_view text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80 || std::isalnum(byte) != 0) {
      out += c;
      continue;
    }
    constexpr char kDigits[] = "0123456789abcdef";
    out.append("\\x").append({kDigits[byte >> 4], kDigits[byte & 15]});
  }
}

// The structures of one trigger, without the trigger itself: "rest of begin" schema "end" | …
std::string Alternatives(const StructuralTag& tag, std::string_view trigger) {
  std::string out;
  for (const Structure& structure : tag.structures) {
    if (!structure.begin.starts_with(trigger)) continue;
    if (!out.empty()) out += " | ";
    const std::string_view rest = std::string_view(structure.begin).substr(trigger.size());
    if (!rest.empty()) json::AppendString(out, rest);
    out.append(" %json ").append(structure.schema ? structure.schema->text : "{}").append(" ");
    if (!structure.end.empty()) json::AppendString(out, structure.end);
  }
  return out;
}

// Free text ends at the first trigger, and the text after the last structure has none.
std::string LarkOf(const StructuralTag& tag) {
  std::string triggers, rules, groups;
  for (std::size_t i = 0; i < tag.triggers.size(); ++i) {
    const std::string number = std::to_string(i);
    std::string escaped;
    AppendEscaped(escaped, tag.triggers[i]);
    triggers += (i == 0 ? "" : "|") + escaped;
    groups += (i == 0 ? "g" : " | g") + number;
    rules += "g" + number + ": t" + number + " (" + Alternatives(tag, tag.triggers[i]) + ")\n";
    rules += "t" + number + "[lazy]: /(?s:.*)" + escaped + "/\n";
  }
  return "start: (" + groups + ")* REST?\n" + rules + "REST: /(?s:.+)/ & ~/(?s:.*)(" + triggers +
         ")(?s:.*)/\n";
}

std::optional<ApiError> Check(std::string_view field, const StructuralTag& tag) {
  const std::string name(field);
  if (tag.triggers.empty()) return MustBe(name + ".triggers", "at least one string", "[]");
  for (const std::string& trigger : tag.triggers) {
    const auto starts = [&trigger](const Structure& s) { return s.begin.starts_with(trigger); };
    if (trigger.empty() || std::ranges::none_of(tag.structures, starts)) {
      return MustBe(name + ".triggers", "the beginning of a structure's `begin`",
                    json::DescribeString(trigger));
    }
  }
  for (const Structure& structure : tag.structures) {
    const auto starts = [&](const std::string& t) { return structure.begin.starts_with(t); };
    if (std::ranges::any_of(tag.triggers, starts)) continue;
    return MustBe(name + ".structures.begin", "a string that begins with a trigger",
                  json::DescribeString(structure.begin));
  }
  return std::nullopt;
}

}  // namespace

GrammarOrError TagGrammar(std::string_view field, std::string_view json) {
  std::string text(json);
  json::Reader outer(json);
  if (json.starts_with('"') && !outer.ReadString(text, "a string")) text.clear();
  StructuralTag tag;
  json::Reader reader(text);
  if (!json::ReadObject<StructuralTag>(reader, kTag, tag, "an object")) {
    return ApiError{ApiErrorKind::kValidation,
                    "`" + std::string(field) + "`: " + reader.error().Text(), std::string(field)};
  }
  if (auto error = Check(field, tag)) return *std::move(error);
  std::string lark = LarkOf(tag);
  return Grammar{"lark " + lark, [lark]() -> Grammar::Written {
                   return GrammarSpec{GrammarSpec::Kind::kLark, lark};
                 }};
}

}  // namespace penstock::router::openai
