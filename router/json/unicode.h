// UTF-8 helpers for JSON text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::router::json {

// Well-formed, without surrogates and overlong forms.
bool IsUtf8(std::string_view text);

void AppendUtf8(std::string& out, std::uint32_t code_point);

// At most `bytes` of well-formed text, cut between characters.
std::string_view CutUtf8(std::string_view text, std::size_t bytes);

// Code points of well-formed text.
std::size_t CountCharacters(std::string_view text);

}  // namespace penstock::router::json
