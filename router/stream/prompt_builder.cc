#include "router/stream/prompt_builder.h"

#include <algorithm>
#include <utility>

#include "common/status.h"
#include "router/stream/volatile_lines.h"

namespace penstock::router {
namespace {

constexpr std::string_view kInputs = "inputs";

GenerationError Invalid(std::string_view field, std::string message) {
  return {.kind = ErrorKind::kValidation,
          .message = std::move(message),
          .field = std::string(field),
          .length = {}};
}

// The client's error for a failure of the text library.
GenerationError FromStatus(std::string_view field, const absl::Status& status) {
  GenerationError error = Invalid(field, Message(status));
  if (status.code() == absl::StatusCode::kFailedPrecondition) error.kind = ErrorKind::kTemplate;
  if (status.code() == absl::StatusCode::kInternal) error.kind = ErrorKind::kInternal;
  return error;
}

// Templates that walk over the arguments of a call do not say why they fail on a text.
GenerationError FromTemplate(const ChatInput& chat, const absl::Status& status) {
  GenerationError error = FromStatus("messages", status);
  if (error.kind != ErrorKind::kTemplate || chat.text_arguments.empty()) return error;
  error.field = chat.text_arguments;
  error.message =
      "`" + error.field + "` is not a JSON object, and the chat template fails: " + error.message;
  return error;
}

// Whole characters at the end of a text. Enough for any marker that opens the answer.
std::string EndOf(std::string_view text) {
  constexpr std::size_t kBytes = 64;
  std::size_t begin = text.size() - std::min(text.size(), kBytes);
  while (begin < text.size() && (text[begin] & 0xc0) == 0x80) ++begin;
  return std::string(text.substr(begin));
}

bool IsEmpty(const GenerationRequest& request) {
  const auto* text = std::get_if<std::string>(&request.prompt);
  if (text != nullptr) return text->empty() && request.cached_prompt.empty();
  const auto* ids = std::get_if<std::vector<TokenId>>(&request.prompt);
  return ids != nullptr && ids->empty();
}

// Keeps the last `count` ids.
void TruncateLeft(std::vector<TokenId>& ids, std::uint32_t count) {
  ids.erase(ids.begin(), ids.end() - count);
}

}  // namespace

PromptBuilder::PromptBuilder(std::shared_ptr<const text::Tokenizer> tokenizer,
                             std::shared_ptr<const text::ChatTemplate> chat, PromptLimits limits,
                             bool drop_volatile_lines)
    : tokenizer_(std::move(tokenizer)),
      chat_(std::move(chat)),
      limits_(limits),
      drop_volatile_lines_(drop_volatile_lines) {}

std::variant<Prompt, GenerationError> PromptBuilder::Build(const GenerationRequest& request) const {
  if (request.max_new_tokens == 0u) {
    return Invalid("max_new_tokens", "`max_new_tokens` must be strictly positive");
  }
  if (IsEmpty(request)) return Invalid(kInputs, "`inputs` cannot be empty");
  if (request.truncate &&
      (*request.truncate == 0 || *request.truncate > limits_.max_input_tokens)) {
    return Invalid("truncate", "`truncate` must be strictly positive and less than " +
                                   std::to_string(limits_.max_input_tokens) +
                                   ". Given: " + std::to_string(*request.truncate));
  }
  Outcome outcome;
  if (const auto* text = std::get_if<std::string>(&request.prompt)) {
    outcome = request.cached_prompt.empty() ? FromText(*text, request)
                                            : AfterCachedPrompt(*text, request);
  } else if (const auto* ids = std::get_if<std::vector<TokenId>>(&request.prompt)) {
    outcome = FromIds(*ids);
  } else {
    outcome = FromChat(std::get<ChatInput>(request.prompt), request);
  }
  if (auto* prompt = std::get_if<Prompt>(&outcome)) {
    const absl::Status words = AddBadWords(request.bad_words, *prompt);
    if (!words.ok()) return FromStatus("bad_words", words);
    if (request.hold_prompt) {
      prompt->pinned_tokens = static_cast<std::uint32_t>(prompt->ids.size());
    }
    return WithinLimits(std::move(*prompt), request);
  }
  return outcome;
}

PromptBuilder::Outcome PromptBuilder::FromText(std::string_view text,
                                               const GenerationRequest& request) const {
  const std::size_t least = text.size() / kMaxBytesPerToken;
  if (!request.truncate && least > limits_.max_input_tokens) {
    return TooLong(static_cast<std::uint32_t>(least), "at least ");
  }
  auto ids = tokenizer_->Encode(text, request.add_special_tokens);
  if (!ids.ok()) return FromStatus(kInputs, ids.status());
  if (text.empty() || ids->empty()) return Invalid(kInputs, "`inputs` cannot be empty");
  return Prompt{.ids = *std::move(ids), .max_new_tokens = 0};
}

// Tokenizes cached prompt and text as one text, with one BOS, so that the output does not depend on
// the cache. Pins the leading tokens that do not depend on the text after them
// (docs/decisions/0016).
PromptBuilder::Outcome PromptBuilder::AfterCachedPrompt(const std::string& text,
                                                        const GenerationRequest& request) const {
  Outcome outcome = FromText(request.cached_prompt + text, request);
  auto* prompt = std::get_if<Prompt>(&outcome);
  if (prompt == nullptr) return outcome;
  const auto alone = tokenizer_->Encode(request.cached_prompt, request.add_special_tokens);
  if (!alone.ok()) return FromStatus("cached_prompt", alone.status());
  const auto end = std::ranges::mismatch(prompt->ids, *alone).in1;
  prompt->pinned_tokens = static_cast<std::uint32_t>(end - prompt->ids.begin());
  return outcome;
}

PromptBuilder::Outcome PromptBuilder::FromIds(std::span<const TokenId> ids) const {
  for (const TokenId id : ids) {
    if (id >= 0 && static_cast<std::uint32_t>(id) < limits_.vocabulary) continue;
    return Invalid(kInputs, "token ids of `inputs` must be >= 0 and < " +
                                std::to_string(limits_.vocabulary) +
                                ". Given: " + std::to_string(id));
  }
  return Prompt{.ids = {ids.begin(), ids.end()}, .max_new_tokens = 0};
}

RenderedChat PromptBuilder::Render(const ChatInput& chat) const {
  std::shared_ptr<const text::ChatTemplate> own = chat_;
  if (chat.template_source) {
    auto compiled = text::ChatTemplate::With(*tokenizer_, *chat.template_source, std::nullopt);
    if (!compiled.ok()) return FromStatus("chat_template", compiled.status());
    own = *std::move(compiled);
  }
  if (own == nullptr) {
    GenerationError error = Invalid("messages", "template not found");
    error.kind = ErrorKind::kTemplate;
    return error;
  }
  std::string kept;
  if (drop_volatile_lines_) kept = WithoutVolatileLines(chat.messages_json);
  auto text = own->Render({.messages_json = drop_volatile_lines_ ? kept : chat.messages_json,
                           .tools_json = chat.tools_json,
                           .kwargs_json = chat.kwargs_json,
                           .add_generation_prompt = chat.add_generation_prompt,
                           .now_seconds = {}});
  if (!text.ok()) return FromTemplate(chat, text.status());
  return *std::move(text);
}

PromptBuilder::Outcome PromptBuilder::FromChat(const ChatInput& chat,
                                               const GenerationRequest& request) const {
  RenderedChat rendered = Render(chat);
  if (auto* error = std::get_if<GenerationError>(&rendered)) return std::move(*error);
  const auto& text = std::get<std::string>(rendered);
  const Time now = SteadyNow();
  Outcome outcome = FromText(text, request);
  if (auto* prompt = std::get_if<Prompt>(&outcome)) {
    prompt->rendered = now;
    prompt->end = EndOf(text);
    if (!chat.kept_messages_json.empty()) prompt->pinned_tokens = KeptTokens(chat, prompt->ids);
  }
  return outcome;
}

// A template may refuse the kept messages alone, for example without an answer to come. Then
// nothing is kept.
std::uint32_t PromptBuilder::KeptTokens(const ChatInput& chat, std::span<const TokenId> ids) const {
  ChatInput kept = chat;
  kept.messages_json = chat.kept_messages_json;
  kept.add_generation_prompt = false;
  const RenderedChat rendered = Render(kept);
  const auto* text = std::get_if<std::string>(&rendered);
  if (text == nullptr) return 0;
  const auto alone = tokenizer_->Encode(*text, false);
  if (!alone.ok()) return 0;
  return static_cast<std::uint32_t>(std::ranges::mismatch(ids, *alone).in1 - ids.begin());
}

GenerationError PromptBuilder::TooLong(std::uint32_t tokens, std::string_view given) const {
  const std::uint32_t limit = limits_.max_input_tokens;
  GenerationError error =
      Invalid(kInputs, "`inputs` must have less than " + std::to_string(limit) +
                           " tokens. Given: " + std::string(given) + std::to_string(tokens));
  error.length = {.prompt_tokens = tokens,
                  .max_new_tokens = 0,
                  .limit = limit,
                  .context = limits_.max_total_tokens,
                  .at_least = !given.empty()};
  return error;
}

TokenizedText TokenizeText(const text::Tokenizer& tokenizer, std::string_view text,
                           TokenizeOptions options) {
  const auto encoding = tokenizer.EncodeWithOffsets(text, options.add_special_tokens);
  if (!encoding.ok()) return FromStatus(kInputs, encoding.status());
  std::vector<TokenSpan> spans;
  spans.reserve(encoding->ids.size());
  for (std::size_t i = 0; i < encoding->ids.size(); ++i) {
    const auto [begin, end] = encoding->offsets[i];
    spans.push_back(
        {encoding->ids[i], static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)});
    if (options.spellings) {
      spans.back().spelling = tokenizer.Token(encoding->ids[i]).value_or("");
    }
  }
  return spans;
}

DecodedTokens DetokenizeIds(const text::Tokenizer& tokenizer, std::span<const TokenId> ids) {
  auto text = tokenizer.Decode(ids, false);
  if (!text.ok()) return FromStatus("tokens", text.status());
  return *std::move(text);
}

// A word has other tokens at the beginning of a text than after a blank, so both forms are bad.
absl::Status PromptBuilder::AddBadWords(const std::vector<std::string>& words,
                                        Prompt& prompt) const {
  for (const std::string& word : words) {
    const std::size_t begin = std::min(word.find_first_not_of(' '), word.size());
    const std::string bare = word.substr(begin);
    for (const std::string& form : {bare, " " + bare}) {
      PENSTOCK_ASSIGN_OR_RETURN(auto ids, tokenizer_->Encode(form, false));
      const bool known = std::ranges::find(prompt.bad_words, ids) != prompt.bad_words.end();
      if (!ids.empty() && !known) prompt.bad_words.push_back(std::move(ids));
    }
  }
  return absl::OkStatus();
}

// In TGI's order: first the total number of tokens, then the prompt's.
PromptBuilder::Outcome PromptBuilder::WithinLimits(Prompt prompt,
                                                   const GenerationRequest& request) const {
  if (request.truncate && prompt.ids.size() > *request.truncate) {
    TruncateLeft(prompt.ids, *request.truncate);
    prompt.pinned_tokens = 0;  // truncation removed its beginning
  }
  const auto tokens = static_cast<std::uint32_t>(prompt.ids.size());
  const std::uint32_t total = limits_.max_total_tokens;
  const std::uint32_t room = total > tokens ? total - tokens : 0;
  const std::uint32_t wanted = request.max_new_tokens.value_or(room);
  const std::uint32_t checked = request.exact_length ? wanted : std::min(wanted, kCheckedNewTokens);
  if (tokens > total || checked > room) {
    GenerationError error = Invalid(
        "max_new_tokens", "`inputs` tokens + `max_new_tokens` must be <= " + std::to_string(total) +
                              ". Given: " + std::to_string(tokens) + " `inputs` tokens and " +
                              std::to_string(checked) + " `max_new_tokens`");
    const bool prompt_alone = tokens > limits_.max_input_tokens;
    error.length = {.prompt_tokens = tokens,
                    .max_new_tokens = prompt_alone ? 0 : wanted,
                    .limit = prompt_alone ? limits_.max_input_tokens : total,
                    .context = total};
    return error;
  }
  if (tokens > limits_.max_input_tokens || room == 0) {
    return TooLong(tokens, "");
  }
  prompt.max_new_tokens = std::min(wanted, room);
  return prompt;
}

}  // namespace penstock::router
