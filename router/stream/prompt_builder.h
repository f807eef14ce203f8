// Makes the prompt of a request: chat template, tokenizer, truncation and limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/ids.h"
#include "common/time.h"
#include "router/engine.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace penstock::router {

struct PromptLimits {
  std::uint32_t max_input_tokens = 0;
  std::uint32_t max_total_tokens = 0;  // prompt and generated tokens together
  std::uint32_t vocabulary = 0;        // ids at or above it are refused
};

struct Prompt {
  std::vector<TokenId> ids;                     // not empty, at most max_input_tokens
  std::uint32_t max_new_tokens = 0;             // 1 … max_total_tokens - ids.size()
  std::uint32_t pinned_tokens = 0;              // leading ids to be kept
  std::optional<Time> rendered;                 // when the template was
  std::string end;                              // the last characters of a chat
  std::vector<std::vector<TokenId>> bad_words;  // GenerationRequest::bad_words as tokens
};

// Immutable and thread-safe. Building takes time in proportion to the prompt, so call it on a text
// thread.
class PromptBuilder {
 public:
  // If at least this many new tokens fit, a larger max_new_tokens is reduced to what fits. This is
  // TGI's rule, which checks one allocation of 1,024 tokens. Not with
  // GenerationRequest::exact_length.
  static constexpr std::uint32_t kCheckedNewTokens = 1024;
  // No vocabulary has longer tokens. Text that is too long even with such tokens is refused before
  // it is tokenized, which takes seconds for megabytes, unless `truncate` is set.
  static constexpr std::size_t kMaxBytesPerToken = 512;

  // `chat` null: chats are refused. `drop_volatile_lines`: see volatile_lines.h.
  PromptBuilder(std::shared_ptr<const text::Tokenizer> tokenizer,
                std::shared_ptr<const text::ChatTemplate> chat, PromptLimits limits,
                bool drop_volatile_lines = false);

  // Errors: kValidation, which names the field, or kTemplate.
  std::variant<Prompt, GenerationError> Build(const GenerationRequest& request) const;

  // The chat as text. Errors: kTemplate or kValidation.
  RenderedChat Render(const ChatInput& chat) const;

  const text::Tokenizer& tokenizer() const { return *tokenizer_; }
  const PromptLimits& limits() const { return limits_; }

 private:
  using Outcome = std::variant<Prompt, GenerationError>;

  Outcome FromText(std::string_view text, const GenerationRequest& request) const;
  Outcome AfterCachedPrompt(const std::string& text, const GenerationRequest& request) const;
  Outcome FromIds(std::span<const TokenId> ids) const;
  Outcome FromChat(const ChatInput& chat, const GenerationRequest& request) const;
  std::uint32_t KeptTokens(const ChatInput& chat, std::span<const TokenId> ids) const;
  GenerationError TooLong(std::uint32_t tokens, std::string_view given) const;
  absl::Status AddBadWords(const std::vector<std::string>& words, Prompt& prompt) const;
  Outcome WithinLimits(Prompt prompt, const GenerationRequest& request) const;

  std::shared_ptr<const text::Tokenizer> tokenizer_;
  std::shared_ptr<const text::ChatTemplate> chat_;
  PromptLimits limits_;
  bool drop_volatile_lines_;
};

// The tokens of a text, for /tokenize, and the text of tokens, for /detokenize.
TokenizedText TokenizeText(const text::Tokenizer& tokenizer, std::string_view text,
                           TokenizeOptions options);
DecodedTokens DetokenizeIds(const text::Tokenizer& tokenizer, std::span<const TokenId> ids);

}  // namespace penstock::router
