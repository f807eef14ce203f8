// Searches for markers in a text of which more may come.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace penstock::router::answer {

// How many bytes at the beginning of `text` are certainly before `marker`. Found is set if the
// marker follows them.
inline std::size_t BytesBefore(std::string_view text, std::string_view marker, bool final,
                               bool& found) {
  const std::size_t place = text.find(marker);
  found = place != text.npos;
  if (found || final) return found ? place : text.size();
  for (std::size_t size = std::min(marker.size() - 1, text.size()); size > 0; --size) {
    if (text.ends_with(marker.substr(0, size))) return text.size() - size;
  }
  return text.size();
}

enum class Next { kOther, kMarker, kUndecided };

// Whether `text` begins with one of the markers.
inline Next NextMarker(std::string_view text, std::span<const std::string_view> markers,
                       bool final) {
  Next next = Next::kOther;
  for (const std::string_view marker : markers) {
    if (text.starts_with(marker)) return Next::kMarker;
    if (!final && marker.starts_with(text)) next = Next::kUndecided;
  }
  return next;
}

}  // namespace penstock::router::answer
