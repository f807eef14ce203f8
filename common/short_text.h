// Shortens text from an untrusted file, so that it fits on one line of a message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace penstock {

// Whether `text` has a character below space.
bool HasControlCharacter(std::string_view text);

// At most `most` bytes of UTF-8 text, cut between two characters and then followed by "…". Control
// characters become '?'.
std::string ShortText(std::string_view text, std::size_t most);

}  // namespace penstock
