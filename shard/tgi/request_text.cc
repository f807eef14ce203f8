#include "shard/tgi/request_text.h"

#include <algorithm>
#include <utility>

#include "common/status.h"

namespace penstock::shard {

absl::StatusOr<RequestText> RequestText::Create(const text::Tokenizer& tokenizer,
                                                std::span<const TokenId> prompt,
                                                std::vector<std::string> stops) {
  using text::IncrementalDecoder;
  const auto context = prompt.last(std::min(prompt.size(), IncrementalDecoder::kContextTokens));
  PENSTOCK_ASSIGN_OR_RETURN(auto own, IncrementalDecoder::Create(tokenizer, false, context));
  // As in TGI, only the last token of the prompt precedes the text.
  PENSTOCK_ASSIGN_OR_RETURN(auto whole,
                            IncrementalDecoder::Create(tokenizer, true, prompt.last(1)));
  text::StopMatcher matcher(std::move(stops), text::StopMatcher::Where::kAtPieceEnd);
  return RequestText(std::move(own), std::move(whole), std::move(matcher));
}

RequestText::RequestText(text::IncrementalDecoder own, text::IncrementalDecoder whole,
                         text::StopMatcher matcher)
    : own_(std::move(own)), whole_(std::move(whole)), matcher_(std::move(matcher)) {}

absl::StatusOr<std::string> RequestText::Push(TokenId token, bool is_end) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string_view own, own_.Push(token));
  std::string piece(own);
  stopped_ = matcher_.Push(piece).has_value();
  if (is_end) return piece;
  PENSTOCK_ASSIGN_OR_RETURN(const std::string_view visible, whole_.Push(token));
  text_ += visible;
  return piece;
}

absl::StatusOr<std::string> RequestText::Finish() {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string_view rest, whole_.Finish());
  text_ += rest;
  return std::move(text_);
}

}  // namespace penstock::shard
