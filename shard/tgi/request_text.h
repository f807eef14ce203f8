// The text of one request of generate.v3: the text of each token and the whole text. As in TGI,
// stop strings are searched in the joined token texts and end the output where a token ends.
//
// Threading: the model thread.
#pragma once

#include <absl/status/statusor.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.h"
#include "text/incremental_decoder.h"
#include "text/stop_matcher.h"
#include "text/tokenizer.h"

namespace penstock::shard {

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

}  // namespace penstock::shard
