#include "tests/unit/router/answer/transcripts.h"

#include <algorithm>
#include <functional>
#include <map>
#include <span>

#include "router/answer/bodies/json_text.h"

namespace penstock::router::answer::testing {
namespace {

using Random = std::mt19937_64;

std::size_t Below(Random& random, std::size_t bound) { return random() % bound; }

template <std::size_t N>
std::string_view Choose(Random& random, const std::string_view (&list)[N]) {
  return list[Below(random, N)];
}

constexpr std::string_view kPieces[] = {"a",
                                        "Paris",
                                        " ",
                                        "\\",
                                        "\"",
                                        "'",
                                        "{",
                                        "}",
                                        "[",
                                        "]",
                                        ",",
                                        ":",
                                        "é",
                                        "你好",
                                        "🌦",
                                        "<think>",
                                        "</think>",
                                        "<tool_call>",
                                        "</tool_",
                                        "[TOOL_CALLS]",
                                        "<|call|>",
                                        "```",
                                        "<｜tool▁call▁end｜>",
                                        "<|\"",
                                        "</para",
                                        "\n",
                                        "\t",
                                        "=",
                                        "(",
                                        ")",
                                        "{\"name\": \"get_weather\", \"arguments\": {}}",
                                        "</function>",
                                        "\"\"\"",
                                        "<|end|>"};

constexpr std::string_view kWords[] = {
    "Let",  "me",  "see", "the",      "weather", "today", "in",          "Paris.", "é", "你好",
    "🌦", "<b>", "{",   "\"name\"", "1.5",     "**x**", "get_weather", "<tool",  "[", "<|"};

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  AppendEscaped(out, text);
  return out + '"';
}

std::string RandomText(Random& random, std::span<const std::string_view> without) {
  std::string text;
  for (std::size_t i = Below(random, 7); i > 0; --i) text += Choose(random, kPieces);
  for (const std::string_view marker : without) {
    for (std::size_t at = text.find(marker); at != text.npos; at = text.find(marker)) {
      text.erase(at, 1);
    }
  }
  return text;
}

std::string RandomNumber(Random& random) {
  constexpr std::string_view kNumbers[] = {"0", "7", "-12", "3.25", "1e9", "123456789012345678"};
  return std::string(Choose(random, kNumbers));
}

std::string RandomValue(Random& random, std::span<const std::string_view> without, int depth) {
  constexpr std::string_view kScalars[] = {"true", "false", "null"};
  const std::size_t kind = Below(random, depth > 2 ? 3 : 5);
  if (kind == 0) return Quoted(RandomText(random, without));
  if (kind == 1) return RandomNumber(random);
  if (kind == 2) return std::string(Choose(random, kScalars));
  std::string out = kind == 3 ? "[" : "{";
  const std::size_t count = Below(random, 4);
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) out += ", ";
    if (kind == 4) out += "\"k" + std::to_string(i) + "\": ";
    out += RandomValue(random, without, depth + 1);
  }
  return out + (kind == 3 ? "]" : "}");
}

std::string RandomContainer(Random& random, std::span<const std::string_view> without, char open) {
  while (true) {
    std::string value = RandomValue(random, without, 0);
    if (value.front() == open) return value;
  }
}

std::vector<Argument> RandomArguments(Random& random, std::span<const std::string_view> without) {
  const std::string text = Quoted(RandomText(random, without));
  std::vector<Argument> all = {{"city", text},
                               {"days", std::to_string(Below(random, 100))},
                               {"ratio", RandomNumber(random)},
                               {"metric", Below(random, 2) == 0 ? "true" : "false"},
                               {"places", RandomContainer(random, without, '[')},
                               {"where", RandomContainer(random, without, '{')},
                               {"note", Below(random, 3) == 0 ? "null" : "\"x" + text.substr(1)},
                               {"other", RandomContainer(random, without, '{')}};
  std::ranges::shuffle(all, random);
  all.resize(Below(random, 5));
  return all;
}

// Words that begin and end without blanks.
std::string RandomWords(Random& random, std::span<const std::string_view> without) {
  std::string text = "The";
  for (std::size_t i = Below(random, 8); i > 0; --i) {
    text += Below(random, 5) == 0 ? "\n" : " ";
    text += Choose(random, kWords);
  }
  for (const std::string_view marker : without) {
    if (text.find(marker) != text.npos) return "The sky.";
  }
  return text + ".";
}

// The content of a JSON string.
std::string Unquoted(std::string_view json) {
  std::string out;
  for (std::size_t i = 1; i + 1 < json.size(); ++i) {
    if (json[i] != '\\') {
      out += json[i];
      continue;
    }
    constexpr std::string_view kLetters = "btnfr\"\\";
    constexpr std::string_view kValues = "\b\t\n\f\r\"\\";
    out += kValues[kLetters.find(json[++i])];
  }
  return out;
}

std::string PlainValue(std::string_view json) {
  return json.starts_with('"') ? Unquoted(json) : std::string(json);
}

std::string Join(const std::vector<std::string>& parts, std::string_view between) {
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) out.append(i == 0 ? "" : between) += parts[i];
  return out;
}

std::string Tagged(const WrittenCall& call, std::string_view before, std::string_view after_name,
                   std::string_view after) {
  std::string out;
  for (const auto& [name, value] : call.arguments) {
    out.append(before).append(name).append(after_name).append(PlainValue(value)).append(after);
  }
  return out;
}

std::string NamedJson(const WrittenCall& call, std::string_view key = "arguments") {
  return "{\"name\": \"" + call.name + "\", \"" + std::string(key) +
         "\": " + ArgumentsJson(call.arguments) + "}";
}

std::string Python(const WrittenCall& call) {
  std::vector<std::string> parts;
  for (auto [name, value] : call.arguments) {
    if (value == "true") value = "True";
    if (value == "false") value = "False";
    if (value == "null") value = "None";
    parts.push_back(name + "=" + value);
  }
  return call.name + "(" + Join(parts, ", ") + ")";
}

// Replaces the quotes of JSON strings, whose content is written as it is.
std::string WithQuotes(std::string_view json, std::string_view quote) {
  std::string out;
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (json[i] != '"') {
      out += json[i];
      continue;
    }
    const std::size_t begin = i++;
    while (json[i] != '"') i += json[i] == '\\' ? 2 : 1;
    out.append(quote).append(Unquoted(json.substr(begin, i + 1 - begin))).append(quote);
  }
  return out;
}

std::string GemmaObject(const WrittenCall& call, std::string_view quote) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : call.arguments) {
    parts.push_back(name + ":" + WithQuotes(value, quote));
  }
  return "call:" + call.name + "{" + Join(parts, ",") + "}";
}

std::string Dsml(const WrittenCall& call) {
  std::string out = "<｜DSML｜invoke name=\"" + call.name + "\">\n";
  for (const auto& [name, value] : call.arguments) {
    const bool string = value.starts_with('"');
    out += "<｜DSML｜parameter name=\"" + name + "\" string=\"" + (string ? "true" : "false") +
           "\">" + PlainValue(value) + "</｜DSML｜parameter>\n";
  }
  return out + "</｜DSML｜invoke>\n";
}

// How a format writes one call, and what stands around and between calls.
struct Writer {
  std::string_view begin, between, end;
  std::function<std::string(const WrittenCall&, std::size_t)> call;
  std::vector<std::string_view> not_in_arguments = {};
  std::vector<std::string_view> not_in_text = {};
};

using Calls = const WrittenCall&;

using WriterMap = std::map<std::string_view, Writer>;

WriterMap FirstWriters() {
  const auto json = [](Calls call, std::size_t) { return NamedJson(call); };
  const auto qwen = [](Calls call, std::size_t) {
    return "<function=" + call.name + ">\n" +
           Tagged(call, "<parameter=", ">\n", "\n</parameter>\n") + "</function>\n";
  };
  return {
      {"hermes", {"<tool_call>\n", "\n</tool_call>\n<tool_call>\n", "\n</tool_call>", json}},
      {"qwen3_coder",
       {"<tool_call>\n", "</tool_call>\n<tool_call>\n", "</tool_call>", qwen, {"</parameter>"}}},
      {"seed_oss", {"<seed:tool_call>\n", "", "</seed:tool_call>", qwen, {"</parameter>"}}},
      {"llama3_json",
       {"<|python_tag|>", "; ", "",
        [](Calls call, std::size_t) { return NamedJson(call, "parameters"); }}},
      {"llama4_pythonic", {"[", ", ", "]", [](Calls call, std::size_t) { return Python(call); }}},
      {"gemma3",
       {"```tool_code\n",
        "\n",
        "\n```",
        [](Calls call, std::size_t) { return Python(call); },
        {},
        {"```"}}},
      {"gemma4",
       {"",
        "",
        "",
        [](Calls call, std::size_t) {
          return "<|tool_call>" + GemmaObject(call, "<|\"|>") + "<tool_call|>";
        },
        {"<|\"|>", "<|\""}}},
      {"functiongemma",
       {"",
        "",
        "",
        [](Calls call, std::size_t) {
          return "<start_function_call>" + GemmaObject(call, "<escape>") + "<end_function_call>";
        },
        {"<escape>"}}},
      {"mistral_v3", {"[TOOL_CALLS] [", ", ", "]", json}},
      {"mistral_v11",
       {"", "", "",
        [](Calls call, std::size_t) {
          return "[TOOL_CALLS]" + call.name + "[ARGS]" + ArgumentsJson(call.arguments);
        }}},
      {"gpt_oss", {"", "", "", nullptr, {}, {"<|"}}},  // by Harmony()
  };
}

WriterMap SecondWriters() {
  const auto json = [](Calls call, std::size_t) { return NamedJson(call); };
  return {
      {"deepseek_v3",
       {"<｜tool▁calls▁begin｜>", "\n", "<｜tool▁calls▁end｜>",
        [](Calls call, std::size_t) {
          return "<｜tool▁call▁begin｜>function<｜tool▁sep｜>" + call.name + "\n```json\n" +
                 ArgumentsJson(call.arguments) + "\n```<｜tool▁call▁end｜>";
        }}},
      {"deepseek_v31",
       {"<｜tool▁calls▁begin｜>", "", "<｜tool▁calls▁end｜>",
        [](Calls call, std::size_t) {
          return "<｜tool▁call▁begin｜>" + call.name + "<｜tool▁sep｜>" +
                 ArgumentsJson(call.arguments) + "<｜tool▁call▁end｜>";
        }}},
      {"deepseek_v32",
       {"<｜DSML｜function_calls>\n",
        "",
        "</｜DSML｜function_calls>",
        [](Calls call, std::size_t) { return Dsml(call); },
        {"</｜DSML｜parameter>"}}},
      {"glm45",
       {"",
        "\n",
        "",
        [](Calls call, std::size_t) {
          return "<tool_call>" + call.name + "\n" +
                 Tagged(call, "<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>\n") +
                 "</tool_call>";
        },
        {"</arg_value>"}}},
      {"glm4",
       {"",
        "<|assistant|>",
        "",
        [](Calls call, std::size_t) { return call.name + "\n" + ArgumentsJson(call.arguments); },
        {},
        {"get_weather\n{"}}},
      {"kimi_k2",
       {"<|tool_calls_section_begin|>", "", "<|tool_calls_section_end|>",
        [](Calls call, std::size_t number) {
          return "<|tool_call_begin|>functions." + call.name + ":" + std::to_string(number) +
                 "<|tool_call_argument_begin|>" + ArgumentsJson(call.arguments) +
                 "<|tool_call_end|>";
        }}},
      {"granite", {"<|tool_call|>[", ", ", "]", json}},
      {"phi4", {"<|tool_call|>[", ", ", "]<|/tool_call|>", json}},
      {"minimax_m1", {"<tool_calls>\n", "\n", "\n</tool_calls>", json}},
      {"minimax_m2",
       {"<minimax:tool_call>\n",
        "",
        "</minimax:tool_call>",
        [](Calls call, std::size_t) {
          return "<invoke name=\"" + call.name + "\">\n" +
                 Tagged(call, "<parameter name=\"", "\">\n", "\n</parameter>\n") + "</invoke>\n";
        },
        {"</parameter>"}}},
  };
}

// Every part is a message of its own. The prompt holds the beginning of the first one.
std::string Harmony(const Script& script) {
  constexpr std::string_view kStart = "<|start|>assistant";
  std::string out;
  const auto add = [&](std::string_view channel, std::string_view content, std::string_view end) {
    if (content.empty()) return;
    out.append(kStart).append("<|channel|>").append(channel).append("<|message|>");
    out.append(content).append(end);
  };
  add("analysis", script.reasoning, "<|end|>");
  const bool last = script.calls.empty() && script.last_text.empty();
  add(last ? "final" : "commentary", script.text, last ? "<|return|>" : "<|end|>");
  for (const WrittenCall& call : script.calls) {
    add("commentary to=functions." + call.name + " <|constrain|>json",
        ArgumentsJson(call.arguments), "<|call|>");
  }
  add("final", script.last_text, "<|return|>");
  return out.empty() ? out : out.substr(kStart.size());
}

const WriterMap& Writers() {
  static const WriterMap writers = [] {
    WriterMap all = FirstWriters();
    all.merge(SecondWriters());
    return all;
  }();
  return writers;
}

const Writer* FindWriter(const Format& format) {
  const auto found = Writers().find(format.name);
  return found == Writers().end() ? nullptr : &found->second;
}

}  // namespace

const std::string_view kSampleToolsJson =
    R"([{"type":"function","function":{"name":"get_weather","parameters":{"type":"object",
    "properties":{"city":{"type":"string"},"days":{"type":"integer"},"ratio":{"type":"number"},
    "metric":{"type":"boolean"},"places":{"type":"array"},"where":{"$ref":"#/$defs/where"},
    "note":{"anyOf":[{"type":"string"},{"type":"null"}]},"other":{}},
    "$defs":{"where":{"type":"object"}}}}},
    {"type":"function","function":{"name":"get","parameters":{"type":"object",
    "properties":{"city":{"type":"string"}}}}},
    {"type":"function","function":{"name":"get_weather_alerts"}}])";

std::shared_ptr<const ToolSet> SampleTools() {
  static const auto tools = std::make_shared<const ToolSet>(ParseTools(kSampleToolsJson).value());
  return tools;
}

std::string ArgumentsJson(const std::vector<Argument>& arguments) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : arguments) parts.push_back("\"" + name + "\": " + value);
  return "{" + Join(parts, ", ") + "}";
}

Answer Script::Expected() const {
  Answer answer{text + last_text, reasoning, {}};
  for (const WrittenCall& call : calls) {
    answer.calls.push_back({call.name, ArgumentsJson(call.arguments)});
  }
  return answer;
}

Script RandomScript(const Format& format, Random& random) {
  constexpr std::string_view kNames[] = {"get_weather", "get", "get_weather_alerts"};
  const Writer* writer = FindWriter(format);
  std::vector<std::string_view> not_in_text = {"```", "<tool_call>"};
  for (const ReasoningMarkers& markers : format.reasoning) not_in_text.push_back(markers.close);
  Script script;
  if (writer != nullptr) {
    not_in_text.insert(not_in_text.end(), writer->not_in_text.begin(), writer->not_in_text.end());
  }
  if (!format.reasoning.empty() && Below(random, 2) == 0) {
    script.reasoning = RandomWords(random, not_in_text);
  }
  if (Below(random, 2) == 0) script.text = RandomWords(random, not_in_text);
  if (writer != nullptr) {
    for (std::size_t i = Below(random, 5); i > 0; --i) {
      script.calls.push_back({std::string(Choose(random, kNames)), {}});
      auto& call = script.calls.back();
      // Only the parameters of get_weather have types.
      if (call.name == "get_weather") {
        call.arguments = RandomArguments(random, writer->not_in_arguments);
      }
    }
  }
  if (Below(random, 4) == 0) script.last_text = RandomWords(random, not_in_text);
  return script;
}

std::string Write(const Format& format, const Script& script) {
  if (format.name == "gpt_oss") return Harmony(script);
  std::string out;
  if (!script.reasoning.empty()) {
    const ReasoningMarkers& markers = format.reasoning.front();
    out.append(markers.open).append("\n").append(script.reasoning).append("\n");
    out.append(markers.close).append("\n\n");
  }
  out += script.text;
  if (const Writer* writer = FindWriter(format); writer != nullptr && !script.calls.empty()) {
    out.append("\n").append(writer->begin);
    for (std::size_t i = 0; i < script.calls.size(); ++i) {
      if (i > 0) out += writer->between;
      out += writer->call(script.calls[i], i);
    }
    out.append(writer->end).append(script.last_text.empty() ? "" : "\n");
  }
  return out + script.last_text;
}

}  // namespace penstock::router::answer::testing
