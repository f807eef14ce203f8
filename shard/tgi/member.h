// One request in a cached batch, its text, and what a step answers for it.
//
// Threading: the model thread.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/ids.h"
#include "common/plan/step_result.h"
#include "shard/tgi/request.h"
#include "shard/tgi/sequence_pool.h"
#include "text/incremental_decoder.h"
#include "text/stop_matcher.h"
#include "text/tokenizer.h"

namespace generate::v3 {
class Generation;
}  // namespace generate::v3

namespace penstock::shard {

// The text of each token and the whole text. As in TGI, stop strings are searched in the joined
// token texts and end the output where a token ends.
class RequestText {
 public:
  static absl::StatusOr<RequestText> Create(const text::Tokenizer& tokenizer,
                                            std::span<const TokenId> prompt,
                                            std::vector<std::string> stops);

  // Returns the text that the token completes, empty while a character is incomplete. Special
  // tokens are spelled out. `is_end`: the token is EOS and is left out of the whole text.
  absl::StatusOr<std::string> Push(TokenId token, bool is_end);

  // Whether a stop string ends with the last token.
  bool stopped() const { return stopped_; }

  // All generated text without special tokens, with the stop string. Call it once.
  absl::StatusOr<std::string> Finish();

 private:
  RequestText(text::IncrementalDecoder own, text::IncrementalDecoder whole,
              text::StopMatcher matcher);

  text::IncrementalDecoder own_;
  text::IncrementalDecoder whole_;
  text::StopMatcher matcher_;
  std::string text_;
  bool stopped_ = false;
};

struct Member {
  Member(TgiRequest request_in, RequestText text_in)
      : request(std::move(request_in)), text(std::move(text_in)) {}

  TgiRequest request;  // after the start the prompt is kept only for prefill tokens
  RequestText text;
  SequencePool::Allocation allocation;
  SequenceId sequence;
  bool started = false;  // in the engine
  // The slot holds the sequence that this one continues. Its end comes with the start.
  bool restarts = false;
  bool stopped = false;  // reported as ended and freed

  std::uint32_t computed = 0;  // positions of the prompt
  std::uint32_t next = 0;      // positions of the next step
  std::uint32_t generated = 0;
  std::vector<float> prompt_logprobs;
  std::vector<TokenId> tokens;  // of the text so far, with a recompute length

  // The result of the last step.
  std::optional<SampledToken> sampled;
  ShardFinish finish = ShardFinish::kNone;
  std::string error;

  // Begins again with the text so far as its prompt, in the same slot and blocks.
  void StartAgain(SequenceId id);
  bool prefilling() const { return computed < request.start.prompt_length; }
};

// In the order of the batch.
using Members = std::vector<std::unique_ptr<Member>>;

// Adds the sampled token to the text of the member. Decides whether the request has ended: by
// length, EOS or stop string, in this order. `out` is null on a rank that does not report. Sets
// `stopped` of the member; the caller then frees its allocation.
absl::Status TakeToken(Member& member, const text::Tokenizer& tokenizer,
                       generate::v3::Generation* out);

}  // namespace penstock::shard
