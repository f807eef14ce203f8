// Text of one request: generated tokens in, events out.
//
// Two texts are kept apart. Each token's own text (TokenInfo::text) is its increment with special
// tokens spelled out. The visible text (GenerationToken::delta, GenerationEnd::text) leaves special
// tokens out, and the text of the token that ended the generation.
//
// Stop strings, by GenerationRequest::include_stop_text:
//   false  searched in the visible text, anywhere; text that could be the beginning of one is held
//          back, and the visible text ends before it;
//   true   (TGI) searched where a token ends, in the joined own texts of the tokens; nothing is
//   held
//          back. When length or EOS falls on the same token, that is the reason.
// Neither ever emits a part of a UTF-8 character. The deltas joined with the tail are the text.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/plan/step_result.h"
#include "router/engine.h"
#include "text/incremental_decoder.h"
#include "text/stop_matcher.h"
#include "text/tokenizer.h"

namespace penstock::router {

struct TextStreamOptions {
  std::vector<std::string> stop;
  bool include_stop_text = false;
  bool logprobs = false;  // fill TokenInfo::logprob
  // Tokens that end the generation and show no text: EOS unless ignored, and stop token ids.
  std::vector<TokenId> end_ids;
};

// What the stream needs of a request; `eos_ids` are the model's.
TextStreamOptions StreamOptionsOf(const GenerationRequest& request,
                                  const std::vector<TokenId>& eos_ids);

// Owned and used by one thread at a time.
class TextStream {
 public:
  // `prompt`: all prompt ids; only the last few are looked at.
  static absl::StatusOr<TextStream> Create(std::shared_ptr<const text::Tokenizer> tokenizer,
                                           std::span<const TokenId> prompt,
                                           TextStreamOptions options);

  // Appends one GenerationToken per token to `events`. Returns the number of generated tokens at
  // which a stop string was completed, once: the caller sends it to the core (FinishAt). Tokens
  // that come after it were in flight and are dropped. Errors are defects of the text library.
  absl::StatusOr<std::optional<std::uint32_t>> Push(std::span<const SampledToken> tokens,
                                                    std::vector<GenerationEvent>& events);

  // The core's end. Gives reason, generated_tokens, tail, text and stop; the caller fills in the
  // rest. The tail belongs to the last token. Once.
  absl::StatusOr<GenerationEnd> Finish(FinishReason reason, std::uint32_t generated_tokens);

  std::uint32_t generated_tokens() const { return count_; }

 private:
  TextStream(std::shared_ptr<const text::Tokenizer> tokenizer, TextStreamOptions options,
             text::IncrementalDecoder own, text::IncrementalDecoder visible);

  absl::Status Next(const SampledToken& token, GenerationToken& event);
  absl::StatusOr<TokenInfo> Alternative(const TokenLogprob& alternative) const;
  // Matches; `delta` becomes what is safe of `pending_`.
  void Release(std::string_view own_text, std::string_view visible_text, std::string& delta);
  bool EndsGeneration(TokenId id) const;

  std::shared_ptr<const text::Tokenizer> tokenizer_;
  TextStreamOptions options_;
  text::IncrementalDecoder own_;
  text::IncrementalDecoder visible_;
  text::StopMatcher matcher_;
  std::optional<text::StopMatch> match_;
  std::string text_;     // visible and given out
  std::string pending_;  // visible and held back
  std::uint32_t count_ = 0;
};

// Prompt tokens as clients see them; logprobs[i] is that of prompt token i + 1, the first has none.
absl::StatusOr<std::vector<TokenInfo>> DescribePrompt(const text::Tokenizer& tokenizer,
                                                      std::span<const TokenId> prompt,
                                                      std::span<const float> logprobs);

}  // namespace penstock::router
