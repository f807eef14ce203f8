// Inside text/ only: ownership and errors of the C interface.
#pragma once

#include <absl/status/status.h>

#include <string>
#include <string_view>

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

// OK for PENSTOCK_TEXT_OK, else the library's message under the code that text/tokenizer.h lists.
absl::Status ToStatus(int32_t code, const RustBytes& error);

}  // namespace penstock::text
