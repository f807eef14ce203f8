#include "router/dispatch/embed_service.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/status.h"

namespace penstock::router {
namespace {

// No vocabulary has longer tokens (PromptBuilder::kMaxBytesPerToken).
constexpr std::size_t kMaxBytesPerToken = 512;

GenerationError BadText(std::string message) {
  return {ErrorKind::kValidation, std::move(message), "input", std::nullopt};
}

GenerationError TooLong(std::size_t tokens, std::uint32_t limit, bool at_least) {
  GenerationError error =
      BadText("the text has " + std::string(at_least ? "at least " : "") + std::to_string(tokens) +
              " tokens; a text may have at most " + std::to_string(limit));
  error.length = LengthExceeded{static_cast<std::uint32_t>(tokens), 0, limit, limit, at_least};
  return error;
}

GenerationError FromShard(const absl::Status& status) {
  const bool gone = absl::IsUnavailable(status) || absl::IsCancelled(status);
  return {gone ? ErrorKind::kUnavailable : ErrorKind::kGeneration, Message(status), "",
          std::nullopt};
}

}  // namespace

EmbedService::EmbedService(const EmbedQueueOptions& options, const ModelFacts& facts,
                           std::shared_ptr<const text::Tokenizer> tokenizer)
    : max_tokens_(facts.max_input_tokens),
      vocabulary_(facts.vocabulary),
      tokenizer_(std::move(tokenizer)),
      queue_(options) {}

void EmbedService::Run(const EmbedJob& job, const Done& done) {
  auto tokenized = TokensOf(job);
  if (auto* error = std::get_if<GenerationError>(&tokenized)) return done(std::move(*error));
  auto& texts = std::get<Texts>(tokenized);
  std::uint32_t tokens = 0;
  for (const EmbedText& text : texts) tokens += static_cast<std::uint32_t>(text.tokens.size());
  const bool queued =
      queue_.Post(std::move(texts), [done, tokens](absl::StatusOr<Vectors> vectors) {
        if (!vectors.ok()) return done(FromShard(vectors.status()));
        done(Embedded{*std::move(vectors), tokens});
      });
  if (queued) return;
  done(GenerationError{ErrorKind::kOverloaded, "too many texts wait for their vectors", "",
                       std::nullopt});
}

std::variant<EmbedService::Texts, GenerationError> EmbedService::TokensOf(
    const EmbedJob& job) const {
  Texts texts;
  for (const EmbedInput& input : job.inputs) {
    auto text = TextOf(job, input);
    if (auto* error = std::get_if<GenerationError>(&text)) return std::move(*error);
    texts.push_back(std::get<EmbedText>(std::move(text)));
  }
  return texts;
}

std::variant<EmbedText, GenerationError> EmbedService::TextOf(const EmbedJob& job,
                                                              const EmbedInput& input) const {
  if (const auto* ids = std::get_if<std::vector<TokenId>>(&input.text)) return FromIds(job, *ids);
  const auto& text = std::get<std::string>(input.text);
  const std::size_t bytes = text.size() + (input.pair ? input.pair->size() : 0);
  const std::size_t least = bytes / kMaxBytesPerToken;
  if (!job.truncate && least > max_tokens_) return TooLong(least, max_tokens_, true);
  std::optional<std::string_view> pair;
  if (input.pair) pair = *input.pair;
  const std::uint32_t most = job.truncate ? std::min(*job.truncate, max_tokens_) : 0;
  auto encoded = tokenizer_->EncodePair(text, pair, job.add_special_tokens, most);
  if (!encoded.ok()) return BadText(Message(encoded.status()));
  if (encoded->ids.empty()) return BadText("the text has no token");
  if (encoded->ids.size() > max_tokens_) return TooLong(encoded->ids.size(), max_tokens_, false);
  EmbedText out{std::move(encoded->ids), static_cast<std::uint32_t>(encoded->first_part)};
  return out;
}

std::variant<EmbedText, GenerationError> EmbedService::FromIds(
    const EmbedJob& job, const std::vector<TokenId>& ids) const {
  if (ids.empty()) return BadText("the list of token ids is empty");
  for (const TokenId id : ids) {
    if (id >= 0 && static_cast<std::uint32_t>(id) < vocabulary_) continue;
    return BadText("token id " + std::to_string(id) + " must be from 0 to " +
                   std::to_string(vocabulary_ - 1));
  }
  EmbedText text{ids};
  if (job.truncate && text.tokens.size() > *job.truncate) text.tokens.resize(*job.truncate);
  if (text.tokens.size() > max_tokens_) return TooLong(ids.size(), max_tokens_, false);
  return text;
}

}  // namespace penstock::router
