#include "common/short_text.h"

#include <algorithm>

namespace penstock {
namespace {

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20; }

// A byte of a character that is not its first one.
bool Continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

bool HasControlCharacter(std::string_view text) {
  return std::any_of(text.begin(), text.end(), IsControl);
}

std::string ShortText(std::string_view text, std::size_t most) {
  const bool cut = text.size() > most;
  if (cut) {
    while (most > 0 && Continues(text[most])) --most;
  }
  std::string out(text.substr(0, most));
  std::replace_if(out.begin(), out.end(), IsControl, '?');
  return cut ? out + "…" : out;
}

}  // namespace penstock
