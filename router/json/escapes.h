// What JSON escapes in a string.
#pragma once

#include <array>
#include <cstddef>

namespace penstock::router::json {

// 0: as it is; 'u': \u00XX; else the letter behind the backslash.
constexpr std::array<char, 256> MakeEscapes() {
  std::array<char, 256> escapes{};
  for (int c = 0; c < 0x20; ++c) escapes[static_cast<std::size_t>(c)] = 'u';
  escapes['\b'] = 'b';
  escapes['\f'] = 'f';
  escapes['\n'] = 'n';
  escapes['\r'] = 'r';
  escapes['\t'] = 't';
  escapes['"'] = '"';
  escapes['\\'] = '\\';
  return escapes;
}
inline constexpr std::array<char, 256> kEscapes = MakeEscapes();

// ASCII that a string has as it is.
inline bool IsPlain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x80 && kEscapes[byte] == 0;
}

}  // namespace penstock::router::json
