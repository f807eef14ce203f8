// Inside text/ only: ownership and errors of the C interface.
#pragma once

#include <absl/status/status.h>

#include <string>
#include <string_view>
#include <vector>

#include "common/ids.h"
#include "text/include/penstock_text.h"

namespace penstock::text {

// Text made by the Rust library, freed at the end of the scope.
class RustBytes {
 public:
  RustBytes() = default;
  ~RustBytes() { penstock_bytes_free(&bytes_); }
  RustBytes(const RustBytes&) = delete;
  RustBytes& operator=(const RustBytes&) = delete;

  penstock_bytes* out() { return &bytes_; }
  std::string_view view() const {
    return {reinterpret_cast<const char*>(bytes_.data), bytes_.size};
  }
  std::string str() const { return std::string(view()); }

 private:
  penstock_bytes bytes_{};
};

// Ids and offsets made by the Rust library, freed at the end of the scope.
class RustTokens {
 public:
  RustTokens() = default;
  ~RustTokens() { penstock_tokens_free(&tokens_); }
  RustTokens(const RustTokens&) = delete;
  RustTokens& operator=(const RustTokens&) = delete;

  penstock_tokens* out() { return &tokens_; }
  std::vector<TokenId> ids() const { return {tokens_.ids, tokens_.ids + tokens_.size}; }
  const penstock_tokens& raw() const { return tokens_; }

 private:
  penstock_tokens tokens_{};
};

// OK for PENSTOCK_TEXT_OK. Otherwise the library's message, with a status code as in tokenizer.h.
absl::Status ToStatus(int32_t code, const RustBytes& error);

}  // namespace penstock::text
