// Text of one request of generate.v3: each token's own text, the whole text, and whether a stop
// string ended it (TGI's rule: where a token ends, in the joined own texts).
//
// One owner: the model thread.
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

  // The text that the token made printable, special tokens spelled out; empty while a character is
  // incomplete. A token that ends the sequence as EOS leaves no trace in the whole text.
  absl::StatusOr<std::string> Push(TokenId token, bool is_end);

  // A stop string ends with the last token.
  bool stopped() const { return stopped_; }

  // All generated text, special tokens left out, the stop string included. Once.
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
