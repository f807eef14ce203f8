// Turns the generated tokens of one request into text events.
//
// There are two texts. A token's own text (TokenInfo::text) spells special tokens out. The visible
// text (GenerationToken::delta, GenerationEnd::text) leaves out the token that ended the output and
// special tokens, save those of kept markers. Deltas and tail joined are the visible text. No event
// splits a UTF-8 character.
//
// StopRule decides how stop strings are found:
// * kHide: They are searched in the visible text, which ends before them. Text that may be the
//   beginning of one is held back.
// * kShow: They are searched in the visible text, which ends after them. The token of a stop token
//   id is visible, too. Nothing is held back.
// * kTokenEnd (as in TGI): They are searched where a token ends, in the joined own texts of the
//   tokens. Nothing is held back. If length or EOS applies to the same token, that is the finish
//   reason.
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
  StopRule stop_rule = StopRule::kHide;
  bool logprobs = false;                  // fill TokenInfo::logprob
  bool decode_alone = false;              // alternatives, see GenerationRequest
  std::vector<std::string> kept_markers;  // see GenerationRequest
  // Tokens that end the output and have no visible text: EOS unless ignored, and stop token ids
  // unless they are shown.
  std::vector<TokenId> end_ids;
};

// The options of a request. `eos_ids`: of the model.
TextStreamOptions StreamOptionsOf(const GenerationRequest& request,
                                  const std::vector<TokenId>& eos_ids);

// Not thread-safe.
class TextStream {
 public:
  // `prompt`: all prompt ids, of which the last few are used.
  static absl::StatusOr<TextStream> Create(std::shared_ptr<const text::Tokenizer> tokenizer,
                                           std::span<const TokenId> prompt,
                                           TextStreamOptions options);

  // Appends a GenerationToken to `events` for each token. When a stop string is complete, returns
  // the number of generated tokens up to it, once; the caller sends it to the core (FinishAt).
  // Later tokens were in flight and are dropped. Errors: the text library failed.
  absl::StatusOr<std::optional<std::uint32_t>> Push(std::span<const SampledToken> tokens,
                                                    std::vector<GenerationEvent>& events);

  // Ends the text, once. Sets reason, generated_tokens, tail, text and stop; the caller sets the
  // rest. The tail belongs to the last token.
  absl::StatusOr<GenerationEnd> Finish(FinishReason reason, std::uint32_t generated_tokens);

  std::uint32_t generated_tokens() const { return count_; }

 private:
  TextStream(std::shared_ptr<const text::Tokenizer> tokenizer, TextStreamOptions options,
             text::IncrementalDecoder own, text::IncrementalDecoder visible);

  absl::Status Next(const SampledToken& token, GenerationToken& event);
  absl::StatusOr<TokenInfo> Alternative(const TokenLogprob& alternative) const;
  // Searches stop strings. Moves the text of `pending_` that cannot be part of one to `delta`.
  void Release(std::string_view own_text, std::string_view visible_text, std::string& delta);
  bool EndsGeneration(TokenId id) const;
  bool IsVisible(TokenId id, std::string_view own_text) const;

  std::shared_ptr<const text::Tokenizer> tokenizer_;
  TextStreamOptions options_;
  text::IncrementalDecoder own_;
  text::IncrementalDecoder visible_;
  text::StopMatcher matcher_;
  std::optional<text::StopMatch> match_;
  std::string text_;     // visible, sent
  std::string pending_;  // visible, held back
  std::uint32_t count_ = 0;
};

// What the shards reported of a prompt: logprobs[i] and alternatives[i] belong to its token i + 1.
struct PromptReport {
  std::span<const float> logprobs;
  std::span<const PromptAlternatives> alternatives;
};

// Adds the prompt's tokens for the client. `decode_alone`: see GenerationRequest.
absl::Status DescribePrompt(const text::Tokenizer& tokenizer, std::span<const TokenId> prompt,
                            PromptReport report, bool decode_alone, GenerationStart& start);

}  // namespace penstock::router
