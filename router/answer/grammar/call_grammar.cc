#include "router/answer/grammar/call_grammar.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "router/answer/grammar/arguments.h"
#include "router/answer/grammar/lark_writer.h"

namespace penstock::router::answer {
namespace {

void AddAlternative(std::string& out, std::string_view alternative) {
  if (!out.empty()) out += " | ";
  out += alternative;
}

// What follows the name of a tool in a call.
std::string AfterName(LarkWriter& writer, const CallForm& form, const Tool& tool, bool by_schema) {
  std::string out = form.numbered ? "\":\" /[0-9]{1,3}/ " : "";
  out += writer.Literal(form.after_name);
  out += by_schema ? ArgumentsPart(writer, form, tool) : FreeArgumentsPart(writer, form);
  return out + writer.Literal(form.call_end);
}

// A call of one of the tools, from its name on.
std::string NamedCalls(LarkWriter& writer, const CallForm& form, const ToolSet& tools,
                       bool all_by_schema) {
  std::string calls;
  for (const Tool& tool : tools.tools()) {
    const bool by_schema = all_by_schema || tool.strict;
    const std::string call = writer.Literal(tool.name) + AfterName(writer, form, tool, by_schema);
    AddAlternative(calls, writer.Rule(call));
  }
  return writer.Rule(calls);
}

// Further calls and the end of the section.
std::string AfterCall(LarkWriter& writer, const CallForm& form, const std::string& calls,
                      bool parallel) {
  const std::string more =
      writer.Literal(std::string(form.separator) + std::string(form.call_begin)) + calls;
  const std::string end = writer.Literal(form.section_end);
  return (parallel && !form.single ? "(" + more + ")* " : "") + end;
}

std::string Opening(const CallForm& form) {
  return std::string(form.section_begin) + std::string(form.call_begin);
}

// Regular expressions without their slashes, joined as alternatives.
std::string RegexOfAny(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) {
    if (!out.empty()) out += '|';
    AppendRegexOf(out, text);
  }
  return out;
}

// Text and calls of a format. The text has no marker that opens a call.
class StrictGrammar {
 public:
  StrictGrammar(const Format& format, const ToolSet& tools, const SpecialTokens& special)
      : format_(format), tools_(tools), opening_(Opening(format.call)), writer_(special) {
    Sort(format);
    calls_ = NamedCalls(writer_, format.call, tools, false);
    after_call_ = AfterCall(writer_, format.call, calls_, true);
  }

  std::string Write() {
    std::string pieces = main_.empty() ? LineCalls() : "";
    if (!main_.empty() && writer_.SpecialAt(main_) == nullptr) {
      AddAlternative(pieces, CallsAfterText());
    }
    text_ = writer_.Terminal("/(?s:.+)/" + Excluded());
    for (const SpecialToken& token : writer_.special()) AddSpecial(token, pieces);
    writer_.Rule("start", "(" + pieces + ")* " + text_ + "?");
    return writer_.Take();
  }

 private:
  // Markers that are texts must not stand in the text, save the main one, which ends it.
  void Sort(const Format& format) {
    for (const std::string_view opener : format.openers) {
      if (opening_.starts_with(opener) && opener.size() > main_.size()) main_ = opener;
    }
    for (const Texts openers : {format.openers, format.line_openers}) {
      for (const std::string_view opener : openers) {
        const bool text = writer_.SpecialAt(opener) == nullptr;
        if (text && !opening_.starts_with(opener)) texts_.emplace_back(opener);
      }
    }
  }

  // " & ~/…/": what the text must not have.
  std::string Excluded() const {
    std::string out;
    if (!texts_.empty()) out += " & ~/(?s:.*)(" + RegexOfAny(texts_) + ")(?s:.*)/";
    if (!lines_.empty()) {
      out += " & ~/((?s:.*)\\n)?[ \\t]*(" + RegexOfAny(lines_) + ")(?s:.*)/";
    }
    return out;
  }

  // The main marker is a text.
  std::string CallsAfterText() {
    std::string regex = "/";
    AppendRegexOf(regex, main_);
    const std::string before = writer_.LazyRule("(/(?s:.*)/" + Excluded() + ") " + regex + "/");
    texts_.emplace_back(main_);
    return before + ' ' + writer_.Literal(opening_.substr(main_.size())) + calls_ + ' ' +
           after_call_;
  }

  // For formats whose calls begin in a line, without a marker. Such calls are known by the names of
  // the tools. Covers strict tools only.
  std::string LineCalls() {
    std::string pieces;
    const std::string_view after_name = format_.call.after_name;
    for (const Tool& tool : tools_.tools()) {
      if (!tool.strict) continue;
      const std::string head = opening_ + tool.name + std::string(after_name.substr(0, 1));
      std::string regex = "/((?s:.*)\\n)?[ \\t]*";
      AppendRegexOf(regex, head);
      CallForm form = format_.call;
      form.after_name = after_name.substr(1);
      AddAlternative(pieces, writer_.LazyRule(regex + "/") + ' ' +
                                 AfterName(writer_, form, tool, true) + after_call_);
      lines_.push_back(head);
    }
    return pieces;
  }

  // What may follow a special token that is in a marker.
  void AddSpecial(const SpecialToken& token, std::string& pieces) {
    std::vector<std::string> tails;
    bool opens = false;  // a call, alone
    for (const std::string_view opener : format_.openers) {
      if (writer_.SpecialAt(opener) != &token) continue;
      tails.emplace_back(opener.substr(token.text.size()));
      opens = opens || tails.back().empty();
    }
    const std::string head = text_ + "? " + LarkWriter::PartOf(token);
    const bool is_main = !main_.empty() && writer_.SpecialAt(main_) == &token;
    std::string call = calls_ + ' ' + after_call_;
    if (is_main) {
      call = writer_.Literal(opening_.substr(token.text.size())) + call;
    } else if (main_.empty()) {
      call = writer_.Literal(opening_) + call;
    }
    if (opens && (is_main || main_.empty())) return AddAlternative(pieces, head + ' ' + call);
    if (opens) return;
    if (tails.empty()) return AddAlternative(pieces, head);
    const std::string other =
        writer_.Terminal("/(?s:.+)/ & ~/(" + RegexOfAny(tails) + ")(?s:.*)/" + Excluded());
    AddAlternative(pieces,
                   head + (is_main ? " (" + call + " | " + other + "?)" : " " + other + "?"));
  }

  const Format& format_;
  const ToolSet& tools_;
  const std::string opening_;
  LarkWriter writer_;
  std::string_view main_;           // the marker of openers that the form of a call begins with
  std::vector<std::string> texts_;  // not in the text
  std::vector<std::string> lines_;  // not at the beginning of a line of the text
  std::string calls_;
  std::string after_call_;
  std::string text_;
};

}  // namespace

std::string RequiredCallGrammar(const Format& format, const ToolSet& tools,
                                const SpecialTokens& special, bool parallel) {
  LarkWriter writer(special);
  const CallForm& form = format.call;
  const std::string calls = NamedCalls(writer, form, tools, true);
  const std::string role = form.role.empty() ? "" : "(" + writer.Literal(form.role) + ")? ";
  writer.Rule("start", role + writer.Literal(Opening(form)) + calls + ' ' +
                           AfterCall(writer, form, calls, parallel));
  return writer.Take();
}

std::string StrictCallGrammar(const Format& format, const ToolSet& tools,
                              const SpecialTokens& special) {
  return StrictGrammar(format, tools, special).Write();
}

}  // namespace penstock::router::answer
