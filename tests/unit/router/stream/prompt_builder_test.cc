#include "router/stream/prompt_builder.h"

#include <gtest/gtest.h>

#include "tests/unit/text/tiny_tokenizer.h"

namespace penstock::router {
namespace {

using Ids = std::vector<TokenId>;

constexpr std::string_view kChat =
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'system' %}"
    "{{ raise_exception('no system role') }}{% endif %}{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}>{% endif %}";

PromptBuilder Builder(PromptLimits limits = {
                          .max_input_tokens = 20, .max_total_tokens = 30, .vocabulary = 260}) {
  const TempFolder folder;
  folder.Write("tokenizer.json", text::ByteLevelJson());
  return PromptBuilder(text::Tokenizer::Load(folder.path()).value(),
                       text::ChatTemplate::Compile(kChat, R"({"bos_token": "<s>"})").value(),
                       limits);
}

GenerationRequest Text(std::string text) {
  GenerationRequest request;
  request.prompt = std::move(text);
  return request;
}

Prompt Built(const PromptBuilder& builder, const GenerationRequest& request) {
  const auto outcome = builder.Build(request);
  const auto* error = std::get_if<GenerationError>(&outcome);
  EXPECT_EQ(error, nullptr) << error->message;
  return error == nullptr ? std::get<Prompt>(outcome) : Prompt{};
}

GenerationError Refused(const PromptBuilder& builder, const GenerationRequest& request) {
  const auto outcome = builder.Build(request);
  const auto* error = std::get_if<GenerationError>(&outcome);
  EXPECT_NE(error, nullptr);
  return error != nullptr ? *error : GenerationError{};
}

TEST(PromptBuilder, TokenizesTextAndCountsItsCharacters) {
  GenerationRequest request = Text("hé he");
  const Prompt prompt = Built(Builder(), request);
  EXPECT_EQ(prompt.ids, (Ids{258, 'h', 0xc3, 0xa9, ' ', 256}));
  EXPECT_EQ(prompt.max_new_tokens, 24u);  // what is left of max_total_tokens
  request.add_special_tokens = false;
  EXPECT_EQ(Built(Builder(), request).ids.front(), 'h');
}

// The prompt is that of one text: one BOS, and a token over the border belongs to the inputs.
TEST(PromptBuilder, ACachedPromptPrecedesTheText) {
  GenerationRequest request = Text(" he");
  request.cached_prompt = "a cat";
  const Prompt prompt = Built(Builder(), request);
  EXPECT_EQ(prompt.ids, Built(Builder(), Text("a cat he")).ids);
  EXPECT_EQ(prompt.pinned_tokens, 6u) << "BOS and five letters";
  request.prompt = "e";
  request.cached_prompt = "xh";
  EXPECT_EQ(Built(Builder(), request).ids, (Ids{258, 'x', 256}));
  EXPECT_EQ(Built(Builder(), request).pinned_tokens, 2u) << "`he` is one token";
  request.prompt = "";
  EXPECT_EQ(Built(Builder(), request).pinned_tokens, 3u);
  request.prompt = "and more";
  request.truncate = 4;
  EXPECT_EQ(Built(Builder(), request).pinned_tokens, 0u);
}

// "he" is one token, " he" two.
TEST(PromptBuilder, ABadWordIsBadAtTheBeginningAndAfterABlank) {
  GenerationRequest request = Text("a");
  request.bad_words = {"he", " he"};
  EXPECT_EQ(Built(Builder(), request).bad_words, (std::vector<Ids>{{256}, {' ', 256}}));
}

TEST(PromptBuilder, AChatMayBringItsTemplate) {
  GenerationRequest request;
  ChatInput chat{.messages_json = R"([{"role":"user","content":"he"}])"};
  chat.template_source = "{{ messages[0].content }}{{ messages[0].content }}";
  request.prompt = chat;
  request.add_special_tokens = false;
  EXPECT_EQ(Built(Builder(), request).ids, (Ids{256, 256}));
  chat.template_source = "{% if %}";
  request.prompt = chat;
  const GenerationError broken = Refused(Builder(), request);
  EXPECT_EQ(broken.kind, ErrorKind::kTemplate);
  EXPECT_EQ(broken.field, "chat_template");
}

TEST(PromptBuilder, TakesIdsAsTheyAreWithinTheVocabulary) {
  GenerationRequest request;
  request.prompt = Ids{1, 2, 259};
  EXPECT_EQ(Built(Builder(), request).ids, (Ids{1, 2, 259}));
  for (const TokenId bad : {260, -1}) {
    request.prompt = Ids{1, bad};
    const GenerationError error = Refused(Builder(), request);
    EXPECT_EQ(error.kind, ErrorKind::kValidation);
    EXPECT_EQ(error.message,
              "token ids of `inputs` must be >= 0 and < 260. Given: " + std::to_string(bad));
  }
}

TEST(PromptBuilder, RendersAChat) {
  GenerationRequest request;
  request.add_special_tokens = false;
  ChatInput chat{.messages_json = R"([{"role": "user", "content": "he"}])",
                 .tools_json = {},
                 .kwargs_json = {},
                 .add_generation_prompt = true};
  request.prompt = chat;
  EXPECT_EQ(Built(Builder(), request).ids, (Ids{258, 256, '>'}));

  chat.messages_json = R"([{"role": "system", "content": "x"}])";
  request.prompt = chat;
  const GenerationError raised = Refused(Builder(), request);
  EXPECT_EQ(raised.kind, ErrorKind::kTemplate);
  EXPECT_EQ(raised.message, "syntax error: no system role (in <string>:1)");

  chat.messages_json = "[";
  request.prompt = chat;
  EXPECT_EQ(Refused(Builder(), request).kind, ErrorKind::kValidation);
}

// The template of the fixture refuses the system; a real one fails where it walks over a text.
TEST(PromptBuilder, ArgumentsThatAreTextAreNamedIfTheTemplateFails) {
  GenerationRequest request;
  ChatInput chat{.messages_json = R"([{"role": "system", "content": "x"}])"};
  chat.text_arguments = "messages[0].tool_calls[0].function.arguments";
  request.prompt = chat;
  const GenerationError error = Refused(Builder(), request);
  EXPECT_EQ(error.kind, ErrorKind::kTemplate);
  EXPECT_EQ(error.field, chat.text_arguments);
  EXPECT_EQ(error.message,
            "`messages[0].tool_calls[0].function.arguments` is not a JSON object, and the chat "
            "template fails: syntax error: no system role (in <string>:1)");
}

// Kept are the tokens that both prompts have.
TEST(PromptBuilder, KeptMessagesOfAChatArePinned) {
  GenerationRequest request;
  request.add_special_tokens = false;
  ChatInput chat{.messages_json = R"([{"role":"user","content":"cat"},
                                      {"role":"user","content":"he"}])"};
  chat.kept_messages_json = R"([{"role":"user","content":"cat"}])";
  request.prompt = chat;
  const Prompt prompt = Built(Builder(), request);
  EXPECT_EQ(prompt.pinned_tokens, 4u) << "BOS and three letters";
  EXPECT_GT(prompt.ids.size(), 4u);
  chat.kept_messages_json = R"([{"role":"system","content":"x"}])";
  request.prompt = chat;
  EXPECT_EQ(Built(Builder(), request).pinned_tokens, 0u) << "the template refuses them";
}

TEST(PromptBuilder, WithoutATemplateChatsAreRefused) {
  const TempFolder folder;
  folder.Write("tokenizer.json", text::ByteLevelJson());
  const PromptBuilder builder(text::Tokenizer::Load(folder.path()).value(), nullptr, {});
  GenerationRequest request;
  request.prompt = ChatInput{};
  EXPECT_EQ(Refused(builder, request).kind, ErrorKind::kTemplate);
  EXPECT_EQ(Refused(builder, request).message, "template not found");
}

TEST(PromptBuilder, TruncatesOnTheLeft) {
  GenerationRequest request = Text("abcdef");
  request.truncate = 2;
  EXPECT_EQ(Built(Builder(), request).ids, (Ids{'e', 'f'}));
  request.truncate = 20;
  EXPECT_EQ(Built(Builder(), request).ids.size(), 7u);
  for (const std::uint32_t bad : {0u, 21u}) {
    request.truncate = bad;
    const GenerationError error = Refused(Builder(), request);
    EXPECT_EQ(error.field, "truncate");
    EXPECT_EQ(error.message, "`truncate` must be strictly positive and less than 20. Given: " +
                                 std::to_string(bad));
  }
}

TEST(PromptBuilder, RefusesEmptyPrompts) {
  GenerationRequest request = Text("");
  request.truncate = 0;  // the prompt is looked at first
  EXPECT_EQ(Refused(Builder(), request).message, "`inputs` cannot be empty");
  request.prompt = Ids{};
  EXPECT_EQ(Refused(Builder(), request).message, "`inputs` cannot be empty");
}

TEST(PromptBuilder, RefusesTextThatIsNotUtf8) {
  const GenerationError error = Refused(Builder(), Text("a\xff"));
  EXPECT_EQ(error.kind, ErrorKind::kValidation);
  EXPECT_EQ(error.field, "inputs");
}

TEST(PromptBuilder, ChecksPromptAndNewTokensTogetherThenThePrompt) {
  GenerationRequest request = Text("abcdefghi");  // 10 tokens with <s>
  request.max_new_tokens = 20;
  EXPECT_EQ(Built(Builder(), request).max_new_tokens, 20u);
  request.max_new_tokens = 21;
  GenerationError error = Refused(Builder(), request);
  EXPECT_EQ(error.field, "max_new_tokens");
  EXPECT_EQ(error.message,
            "`inputs` tokens + `max_new_tokens` must be <= 30. Given: 10 `inputs` tokens and 21 "
            "`max_new_tokens`");
  ASSERT_TRUE(error.length);
  EXPECT_EQ(error.length->prompt_tokens, 10u);
  EXPECT_EQ(error.length->max_new_tokens, 21u);
  EXPECT_EQ(error.length->limit, 30u);
  request.max_new_tokens = 5'000;  // one allocation of 1,024 is checked, and named in TGI's words
  const GenerationError large = Refused(Builder(), request);
  EXPECT_TRUE(large.message.ends_with("10 `inputs` tokens and 1024 `max_new_tokens`"));
  EXPECT_EQ(large.length->max_new_tokens, 5'000u);

  request = Text(std::string(20, 'x'));
  error = Refused(Builder(), request);
  EXPECT_EQ(error.field, "inputs");
  EXPECT_EQ(error.message, "`inputs` must have less than 20 tokens. Given: 21");
  EXPECT_EQ(error.length->max_new_tokens, 0u);
  request = Text(std::string(40, 'x'));
  // The prompt alone is too long, so the limit is that of a prompt.
  EXPECT_EQ(Refused(Builder(), request).length->limit, 20u);
  request.max_new_tokens = 1;  // also that of a completion that scores its prompt
  EXPECT_EQ(Refused(Builder(), request).length->limit, 20u);
  EXPECT_EQ(Refused(Builder(), request).length->max_new_tokens, 0u);
  request = Text("x");
  request.max_new_tokens = 0;
  EXPECT_EQ(Refused(Builder(), request).message, "`max_new_tokens` must be strictly positive");
}

TEST(PromptBuilder, RefusesHugeTextWithoutTokenizingIt) {
  GenerationRequest request = Text(std::string(std::size_t{16} << 20, 'x'));
  const GenerationError error = Refused(Builder(), request);
  EXPECT_EQ(error.message, "`inputs` must have less than 20 tokens. Given: at least 32768");
  ASSERT_TRUE(error.length);
  EXPECT_TRUE(error.length->at_least);
  EXPECT_EQ(error.length->context, 30u);
  EXPECT_EQ(error.length->prompt_tokens, 32768u);
  request.prompt = std::string(20'000, 'x');
  request.truncate = 5;
  EXPECT_EQ(Built(Builder(), request).ids.size(), 5u);
}

TEST(PromptBuilder, ReducesMaxNewTokensToWhatFits) {
  const PromptBuilder builder =
      Builder({.max_input_tokens = 100, .max_total_tokens = 2'000, .vocabulary = 260});
  GenerationRequest request = Text("abc");  // 4 tokens
  request.max_new_tokens = 100'000;
  EXPECT_EQ(Built(builder, request).max_new_tokens, 1'996u);
  request.exact_length = true;
  EXPECT_EQ(Refused(builder, request).length->max_new_tokens, 100'000u);
  request.max_new_tokens = 1'996;
  EXPECT_EQ(Built(builder, request).max_new_tokens, 1'996u);
  request.max_new_tokens = std::nullopt;
  EXPECT_EQ(Built(builder, request).max_new_tokens, 1'996u);
}

}  // namespace
}  // namespace penstock::router
