// Text of generated tokens as it becomes printable.
//
// Every increment is whole UTF-8: while the text ends in U+FFFD nothing is given out, since the
// next token may complete the character (the rule of transformers and TGI). The increments joined
// are the text that decoding all tokens at once gives after the context's text. One exception:
// where a SentencePiece run of byte tokens begins with whole characters and then breaks, decoding
// at once turns the whole run into U+FFFD; the characters given out already stay.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <span>
#include <string_view>

#include "common/ids.h"
#include "text/tokenizer.h"

struct penstock_decoder;

namespace penstock::text {

// One per stream; used by one thread at a time. Work per token is bounded.
class IncrementalDecoder {
 public:
  // So many tokens of context are always enough.
  static constexpr std::size_t kContextTokens = 6;

  // `context`: the end of the prompt, oldest first. The generated text continues it; it decides,
  // for instance, whether SentencePiece's leading space stays. The tokenizer must outlive it.
  static absl::StatusOr<IncrementalDecoder> Create(const Tokenizer& tokenizer, bool skip_special,
                                                   std::span<const TokenId> context);
  ~IncrementalDecoder();
  IncrementalDecoder(IncrementalDecoder&& other) noexcept;
  IncrementalDecoder& operator=(IncrementalDecoder&& other) noexcept;

  // The text that `id` made printable, possibly empty; valid until the next call. A token that
  // means the same wherever it stands costs a look into the tokenizer's table.
  absl::StatusOr<std::string_view> Push(TokenId id);

  // The held-back rest, an incomplete character as U+FFFD. No token may follow.
  absl::StatusOr<std::string_view> Finish();

 private:
  IncrementalDecoder(penstock_decoder* handle, const Tokenizer& tokenizer, bool skip_special);

  penstock_decoder* handle_;
  const Tokenizer* tokenizer_;
  bool skip_special_;
  bool settled_;  // nothing before has a part in the next token's text
};

}  // namespace penstock::text
