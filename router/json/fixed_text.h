// JSON of bounded length, put together on the stack: pieces are copied without a look at how much
// room is left, which is half of what a token's event costs. The writer sees to it that all pieces
// together fit `Size` bytes.
#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "router/json/escapes.h"
#include "router/json/plain_float.h"

namespace penstock::router::json {

template <std::size_t Size>
class FixedText {
 public:
  std::string_view view() const { return {text_.data(), end_}; }

  template <std::size_t N>
  void Add(const char (&literal)[N]) {
    std::memcpy(end_, literal, N - 1);
    end_ += N - 1;
  }
  template <std::integral T>
  void AddInteger(T value) {
    end_ = std::to_chars(end_, text_.data() + Size, value).ptr;
  }
  // False: `text` needs an escape or is not ASCII; nothing that is of use was added.
  bool AddPlainString(std::string_view text) {
    *end_++ = '"';
    for (const char c : text) {
      if (!IsPlain(c)) return false;
      *end_++ = c;
    }
    *end_++ = '"';
    return true;
  }
  // False: a float of no usual size (plain_float.h).
  bool AddPlainFloat(float value) {
    char* const end = WritePlainFloat(end_, value);
    if (end == nullptr) return false;
    end_ = end;
    return true;
  }

 private:
  std::array<char, Size> text_;
  char* end_ = text_.data();
};

}  // namespace penstock::router::json
