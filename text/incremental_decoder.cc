#include "text/incremental_decoder.h"

#include <utility>

#include "common/status.h"
#include "text/rust_call.h"

namespace penstock::text {

absl::StatusOr<IncrementalDecoder> IncrementalDecoder::Create(const Tokenizer& tokenizer,
                                                              bool skip_special,
                                                              std::span<const TokenId> context) {
  penstock_decoder* handle = nullptr;
  RustBytes error;
  const int32_t code = penstock_decoder_new(tokenizer.handle(), skip_special ? 1 : 0,
                                            reinterpret_cast<const uint32_t*>(context.data()),
                                            context.size(), &handle, error.out());
  PENSTOCK_RETURN_IF_ERROR(ToStatus(code, error));
  return IncrementalDecoder(handle, tokenizer, skip_special);
}

IncrementalDecoder::IncrementalDecoder(penstock_decoder* handle, const Tokenizer& tokenizer,
                                       bool skip_special)
    : handle_(handle),
      tokenizer_(&tokenizer),
      skip_special_(skip_special),
      settled_(penstock_decoder_is_settled(handle) != 0) {}

IncrementalDecoder::~IncrementalDecoder() { penstock_decoder_free(handle_); }

IncrementalDecoder::IncrementalDecoder(IncrementalDecoder&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)),
      tokenizer_(other.tokenizer_),
      skip_special_(other.skip_special_),
      settled_(other.settled_) {}

IncrementalDecoder& IncrementalDecoder::operator=(IncrementalDecoder&& other) noexcept {
  std::swap(handle_, other.handle_);
  tokenizer_ = other.tokenizer_;
  skip_special_ = other.skip_special_;
  settled_ = other.settled_;
  return *this;
}

absl::StatusOr<std::string_view> IncrementalDecoder::Push(TokenId id) {
  if (settled_) {
    const Tokenizer::TokenFacts& facts = tokenizer_->FactsOf(id);
    if (facts.special && skip_special_) return std::string_view();
    if (facts.settled) return std::string_view(facts.text);
  }
  const char* text = nullptr;
  size_t size = 0;
  RustBytes error;
  const int32_t code =
      penstock_decoder_push(handle_, static_cast<uint32_t>(id), &text, &size, error.out());
  PENSTOCK_RETURN_IF_ERROR(ToStatus(code, error));
  settled_ = penstock_decoder_is_settled(handle_) != 0;
  return std::string_view(text, size);
}

absl::StatusOr<std::string> IncrementalDecoder::Peek(TokenId id) const {
  if (settled_) {
    const Tokenizer::TokenFacts& facts = tokenizer_->FactsOf(id);
    if (facts.special && skip_special_) return std::string();
    if (facts.settled) return facts.text;
  }
  RustBytes text, error;
  const int32_t code =
      penstock_decoder_peek(handle_, static_cast<uint32_t>(id), text.out(), error.out());
  PENSTOCK_RETURN_IF_ERROR(ToStatus(code, error));
  return text.str();
}

absl::StatusOr<std::string_view> IncrementalDecoder::Finish() {
  const char* text = nullptr;
  size_t size = 0;
  RustBytes error;
  const int32_t code = penstock_decoder_finish(handle_, &text, &size, error.out());
  PENSTOCK_RETURN_IF_ERROR(ToStatus(code, error));
  return std::string_view(text, size);
}

}  // namespace penstock::text
