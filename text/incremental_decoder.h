// Decodes generated tokens to text, one token at a time.
//
// Every delta is complete UTF-8. While the text ends in U+FFFD the delta is empty, because the next
// token may complete the character (the rule of transformers and TGI). All deltas together equal
// the text that decoding all tokens at once adds to the context. There is one exception: a
// SentencePiece run of byte tokens that begins with complete characters but is not UTF-8. Decoding
// all tokens at once turns the whole run into U+FFFD. This class returns its complete characters,
// because it decodes them first.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "common/ids.h"
#include "text/tokenizer.h"

struct penstock_decoder;

namespace penstock::text {

// One per stream; used by one thread at a time. Work per token is bounded.
class IncrementalDecoder {
 public:
  // A longer context never changes the text.
  static constexpr std::size_t kContextTokens = 6;

  // `context`: the end of the prompt, oldest first. The generated text continues it. It decides,
  // for example, whether SentencePiece's leading space stays. The tokenizer must outlive it.
  static absl::StatusOr<IncrementalDecoder> Create(const Tokenizer& tokenizer, bool skip_special,
                                                   std::span<const TokenId> context);
  ~IncrementalDecoder();
  IncrementalDecoder(IncrementalDecoder&& other) noexcept;
  IncrementalDecoder& operator=(IncrementalDecoder&& other) noexcept;

  // The text that `id` made printable, possibly empty; valid until the next call. A token whose
  // text does not depend on its neighbours takes one table look-up.
  absl::StatusOr<std::string_view> Push(TokenId id);

  // The text that `id` would add if it were the next and last token. Nothing changes.
  absl::StatusOr<std::string> Peek(TokenId id) const;

  // The held-back rest, an incomplete character as U+FFFD. No token may follow.
  absl::StatusOr<std::string_view> Finish();

 private:
  IncrementalDecoder(penstock_decoder* handle, const Tokenizer& tokenizer, bool skip_special);

  penstock_decoder* handle_;
  const Tokenizer* tokenizer_;
  bool skip_special_;
  bool settled_;  // the next token's text does not depend on earlier ones
};

}  // namespace penstock::text
