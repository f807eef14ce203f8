#include "text/chat_template.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <map>

#include "tests/unit/text/shared_data.h"
#include "tests/unit/text/tiny_tokenizer.h"

namespace penstock::text {
namespace {

constexpr std::int64_t kGoldenNow = 1'752'148'800;  // 2025-07-10 12:00:00
constexpr std::string_view kGlobals = R"({"bos_token": "<s>", "eos_token": "</s>"})";

// The output of the golden case if it differs from the expected text or error, else empty.
std::string Difference(const boost::json::value& item, const absl::StatusOr<std::string>& text) {
  if (!item.at("error").is_null()) {
    return text.ok() ? "no error; Python: " + Text(item.at("error")) : "";
  }
  if (!text.ok()) return text.status().ToString();
  const std::string expected = Text(item.at("expected"));
  return *text == expected ? "" : "text: " + *text + "\nexpected: " + expected;
}

absl::StatusOr<std::string> Render(const std::string& source, const Conversation& conversation) {
  const auto compiled = ChatTemplate::Compile(source, kGlobals);
  if (!compiled.ok()) return compiled.status();
  return (*compiled)->Render(conversation);
}

TEST(ChatTemplateGolden, RendersAsPython) {
  PENSTOCK_SHARED_OR_SKIP(folder, "chat_templates");
  const boost::json::value golden = ReadJson(folder + "/golden_renderings.json");
  const std::string tools = "[" + boost::json::serialize(golden.at("tool")) + "]";
  std::map<std::string, std::string> different;
  for (const auto& item : golden.at("cases").as_array()) {
    const std::string path = Text(item.at("template"));
    const std::string conversation = Text(item.at("case"));
    const bool add_prompt = item.at("add_generation_prompt").as_bool();
    const std::string messages = boost::json::serialize(golden.at("contexts").at(conversation));
    const bool has_tools = conversation.starts_with("tool_");
    const auto text = Render(ReadFile(folder + "/" + path),
                             {.messages_json = messages,
                              .tools_json = has_tools ? std::string_view(tools) : "",
                              .kwargs_json = {},
                              .add_generation_prompt = add_prompt,
                              .now_seconds = kGoldenNow});
    const std::string what = Difference(item, text);
    if (!what.empty()) different[path + " " + conversation + (add_prompt ? " prompt" : "")] = what;
  }
  EXPECT_EQ(golden.at("cases").as_array().size(), 736u);
  for (const auto& [name, what] : different) ADD_FAILURE() << name << "\n" << what;
}

TEST(ChatTemplate, GivesMessagesToolsArgumentsAndTokens) {
  const auto text = Render(
      "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content | trim }}{% endfor %}"
      "{% if tools %}{{ tools | tojson }}{% endif %}{% if thinking %}!{% endif %}"
      "{% if add_generation_prompt %}>{% endif %}",
      {.messages_json = R"([{"role": "user", "content": " hé "}])",
       .tools_json = R"([{"b": 1, "a": null}])",
       .kwargs_json = R"({"thinking": true})",
       .add_generation_prompt = true,
       .now_seconds = {}});
  EXPECT_EQ(text.value(), R"(<s>[user]hé[{"b": 1, "a": null}]!>)");
}

TEST(ChatTemplate, ErrorsNameTheProblem) {
  const auto code = [](const std::string& source, const Conversation& conversation) {
    const auto text = Render(source, conversation);
    EXPECT_EQ(text.status().message().find('\n'), absl::string_view::npos);
    return text.status().code();
  };
  const Conversation empty{.messages_json = "[]",
                           .tools_json = {},
                           .kwargs_json = {},
                           .add_generation_prompt = false,
                           .now_seconds = 0};
  Conversation broken = empty;
  broken.messages_json = "[";
  EXPECT_EQ(code("x", broken), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code("{{ raise_exception('no\nsystem role') }}", empty),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(code("{% if %}", empty), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(
      code("{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}", empty),
      absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(code("{% for a in range(99999) %}{{ 'x' * 1000 }}{% endfor %}", empty),
            absl::StatusCode::kResourceExhausted);
}

TEST(ChatTemplate, LimitsAreThoseGiven) {
  const auto compiled = ChatTemplate::Compile("{{ messages }}{{ messages }}", "{}").value();
  const Conversation conversation{.messages_json = R"(["12345678"])",
                                  .tools_json = {},
                                  .kwargs_json = {},
                                  .add_generation_prompt = false,
                                  .now_seconds = 0};
  TemplateLimits limits;
  EXPECT_TRUE(compiled->Render(conversation, limits).ok());
  limits.output_bytes = 20;
  EXPECT_EQ(compiled->Render(conversation, limits).status().code(),
            absl::StatusCode::kResourceExhausted);
  limits = {};
  limits.input_bytes = 5;
  EXPECT_EQ(compiled->Render(conversation, limits).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(ChatTemplate, OfAModelFollowsTheFilesBesideTheTokenizer) {
  const TempFolder folder;
  folder.Write("tokenizer.json", ByteLevelJson());
  const auto render = [&](std::string_view tools) {
    const auto tokenizer = Tokenizer::Load(folder.path()).value();
    const auto compiled = ChatTemplate::Of(*tokenizer);
    if (!compiled.ok()) return compiled.status().ToString();
    return (*compiled)
        ->Render({.messages_json = "[]",
                  .tools_json = tools,
                  .kwargs_json = {},
                  .add_generation_prompt = false,
                  .now_seconds = 0})
        .value();
  };
  EXPECT_TRUE(render("").starts_with("NOT_FOUND"));
  folder.Write("tokenizer_config.json", R"({"bos_token": {"content": "<s>"}, "chat_template": [
      {"name": "tool_use", "template": "tools"}, {"name": "default", "template": "{{ bos_token }}"}]})");
  EXPECT_EQ(render(""), "<s>");
  EXPECT_EQ(render("[1]"), "tools");
  folder.Write("chat_template.json", R"({"chat_template": "from json"})");
  EXPECT_EQ(render(""), "from json");
  folder.Write("chat_template.jinja", "from jinja");
  EXPECT_EQ(render("[1]"), "from jinja");
}

}  // namespace
}  // namespace penstock::text
