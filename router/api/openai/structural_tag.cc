#include <algorithm>
#include <optional>
#include <utility>

#include "router/answer/grammar/lark_writer.h"
#include "router/api/openai/grammar_forms.h"
#include "router/json/reader.h"
#include "router/json/writer.h"

namespace penstock::router::openai {
namespace {

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
    answer::AppendRegexOf(escaped, tag.triggers[i]);
    triggers += (i == 0 ? "" : "|") + escaped;
    groups += (i == 0 ? "g" : " | g") + number;
    rules += "g" + number + ": t" + number + " (" + Alternatives(tag, tag.triggers[i]) + ")\n";
    rules += "t" + number + "[lazy]: /(?s:.*)" + escaped + "/\n";
  }
  return "start: (" + groups + ")* REST?\n" + rules + "REST: /(?s:.+)/ & ~/(?s:.*)(" + triggers +
         ")(?s:.*)/\n";
}

std::optional<ApiError> CheckTag(std::string_view field, const StructuralTag& tag) {
  const std::string name(field);
  if (tag.triggers.empty()) return Invalid(name + ".triggers", "must have at least one string");
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

GrammarOrError TagGrammar(std::string_view field, const StructuralTag& tag) {
  if (auto error = CheckTag(field, tag)) return *std::move(error);
  std::string lark = LarkOf(tag);
  return Grammar{"lark " + lark, [lark]() -> Grammar::Written {
                   return GrammarSpec{GrammarSpec::Kind::kLark, lark};
                 }};
}

GrammarOrError TagGrammar(std::string_view field, std::string_view json) {
  std::string text(json);
  json::Reader outer(json);
  if (json.starts_with('"') && !outer.ReadString(text, "a string")) text.clear();
  StructuralTag tag;
  json::Reader reader(text);
  if (!ReadValue(reader, tag, "an object")) {
    return ApiError{ApiErrorKind::kValidation,
                    "`" + std::string(field) + "`: " + reader.error().Text(), std::string(field)};
  }
  return TagGrammar(field, tag);
}

}  // namespace penstock::router::openai
